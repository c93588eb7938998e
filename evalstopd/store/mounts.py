"""On which file system a folder lies: SQLite's write-ahead log must not be on one that is shared over a network."""

import re

_NETWORK = re.compile(
    "nfs4?|lustre|gpfs|cifs|smb[23]|smbfs|beegfs|fhgfs|ceph|glusterfs|panfs|wekafs|daos|dvs|afs|coda|orangefs|pvfs2|"
    # Shared by a block device or a host, with no memory that all who open a file share.
    "ocfs2|gfs2?|acfs|9p|virtiofs|vboxsf|prl_fs|vmhgfs|fuse(\\..*)?"
)


def network_file_system(mountinfo: str, folder: str) -> str | None:
    """Return the type of the network file system that an absolute, resolved folder lies on, else None.

    `mountinfo` is the text of /proc/self/mountinfo (proc(5)). The longest mount point that holds the folder
    counts, the later one where two are the same. Any FUSE file system counts as a network's.
    """
    kind, longest = "", -1
    for line in mountinfo.splitlines():
        before, _, after = line.partition(" - ")
        if len(before.split()) < 5 or not after:
            continue
        point = _unescaped(before.split()[4]).rstrip("/")
        if len(point) >= longest and (folder == point or folder.startswith(f"{point}/")):
            kind, longest = after.split()[0], len(point)
    return kind if _NETWORK.fullmatch(kind) else None


def _unescaped(text: str) -> str:
    return re.sub(r"\\([0-7]{3})", lambda found: chr(int(found[1], 8)), text)
