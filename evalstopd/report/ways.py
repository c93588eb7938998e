"""How a run is proven to be a job's on this site, for the owner of a job that has none."""


def ways(*, seals: bool, tags: bool) -> str:
    """Return every way that the site's settings allow: by comment always, by seal with a site key, by checked tags."""
    words = ["the job's comment says mlflow_run=ID (comment)"]
    running = "once that runs and has the metric"
    if seals:
        words.append(f"evalstopd's plugin in the training environment seals the run, {running} (mac)")
    if tags:
        words.append(f"the run of the job's owner has the tags slurm.job_id and slurm.cluster, {running} (tag)")
    return f"a run is proven to be a job's here where {', or where '.join(words)}"
