"""Which file systems are a network's, by tables of mounts as the kernel writes them."""

import pytest

from evalstopd.store.mounts import network_file_system

MOUNTS = r"""
24 27 0:6 / /dev rw,relatime - devtmpfs devtmpfs rw
27 1 254:0 / / rw,relatime - ext4 /dev/vda rw
40 27 0:40 / /home rw,relatime shared:9 master:2 - nfs4 server:/home rw,vers=4.2
41 40 8:1 / /home/local rw - xfs /dev/sda1 rw
42 27 0:41 /sub /with\040space\134 rw - lustre mgs@tcp:/fs rw
43 27 0:42 / /gluster rw - fuse.glusterfs host:/vol rw
44 27 0:43 / /ntfs rw - fuseblk /dev/sdb1 rw
45 27 0:44 / /twice rw - nfs server:/a rw
46 45 0:45 / /twice rw - ext4 /dev/sdc1 rw
47 27 0:46 / /smb rw - cifs //server/share rw
48 27 0:47 / /gpfs rw - gpfs gpfs rw
49 27 0:48 / /nine rw - 9p host rw
a line that is none
"""


@pytest.mark.parametrize(
    ("folder", "expected"),
    [
        ("/", None),
        ("/var/lib/evalstopd", None),
        ("/home", "nfs4"),
        ("/home/ada/store", "nfs4"),
        ("/homestead", None),
        ("/home/local/store", None),
        ("/home/locally", "nfs4"),
        ("/with space\\/a", "lustre"),
        ("/with", None),
        ("/gluster/a", "fuse.glusterfs"),
        ("/ntfs/a", None),
        ("/twice/a", None),
        ("/smb", "cifs"),
        ("/gpfs/a/b", "gpfs"),
        ("/nine", "9p"),
    ],
)
def test_the_longest_mount_point_tells(folder: str, expected: str | None) -> None:
    """A local disk mounted below a network's is local, and the last of two mounts at one place counts."""
    assert network_file_system(MOUNTS, folder) == expected


def test_no_mounts_no_finding() -> None:
    """An empty table names no file system."""
    assert network_file_system("", "/home") is None


@pytest.mark.parametrize(
    "kind",
    [
        "nfs",
        "nfs4",
        "lustre",
        "gpfs",
        "cifs",
        "smb2",
        "smb3",
        "smbfs",
        "beegfs",
        "fhgfs",
        "ceph",
        "glusterfs",
        "panfs",
        "wekafs",
        "daos",
        "dvs",
        "afs",
        "coda",
        "orangefs",
        "pvfs2",
        "ocfs2",
        "gfs2",
        "acfs",
        "9p",
        "virtiofs",
        "vboxsf",
        "vmhgfs",
        "fuse",
        "fuse.sshfs",
        "fuse.vmhgfs-fuse",
        "fuse.daos",
    ],
)
def test_every_kind_that_several_hosts_share_is_a_networks(kind: str) -> None:
    assert network_file_system(f"27 1 0:9 / /store rw - {kind} source rw", "/store/a") == kind


@pytest.mark.parametrize("kind", ["ext4", "xfs", "btrfs", "zfs", "tmpfs", "overlay", "f2fs", "bcachefs", "fuseblk"])
def test_a_local_kind_is_none(kind: str) -> None:
    assert network_file_system(f"27 1 0:9 / /store rw - {kind} source rw", "/store/a") is None
