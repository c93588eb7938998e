"""The site key: a file that others can read is refused, and so is one that is too short."""

from pathlib import Path

import pytest

from evalstopd.adapters.site_key import read_site_key
from evalstopd.core.mac import SiteKey
from evalstopd.errors import Misconfigured

HEX = "ab" * 32


def key_file(folder: Path, mode: int, text: str = f"{HEX}\n") -> Path:
    path = folder / "mac-key"
    path.write_text(text)
    path.chmod(mode)
    return path


@pytest.mark.parametrize("mode", [0o400, 0o600])
def test_the_owners_own_file_is_read_without_its_line_end(tmp_path: Path, mode: int) -> None:
    assert read_site_key(key_file(tmp_path, mode)) == SiteKey(HEX.encode())


@pytest.mark.parametrize("mode", [0o440, 0o404, 0o420, 0o401, 0o777])
def test_a_file_that_others_can_reach_is_refused(tmp_path: Path, mode: int) -> None:
    with pytest.raises(Misconfigured, match="only its owner") as error:
        read_site_key(key_file(tmp_path, mode))
    assert HEX not in str(error.value)


def test_a_credential_of_systemd_has_an_access_list_that_looks_like_a_readable_group(tmp_path: Path) -> None:
    assert read_site_key(key_file(tmp_path, 0o440), str(tmp_path)) == SiteKey(HEX.encode())
    for mode, folder in ((0o444, tmp_path), (0o440, tmp_path / "other")):
        with pytest.raises(Misconfigured):
            read_site_key(key_file(tmp_path, mode), str(folder))


def test_what_is_no_key_is_refused_in_one_line(tmp_path: Path) -> None:
    for path in (tmp_path / "missing", tmp_path, key_file(tmp_path, 0o400, "short")):
        with pytest.raises(Misconfigured, match=r"binding.mac_key: .+"):
            read_site_key(path)
