"""A file is written in one step, where its path leads; what cannot be a file is said."""

import pytest

from minimind_edu.weights.writing import file_to_write, replacing


def test_a_link_stays_and_the_file_that_it_leads_to_is_replaced(tmp_path):
    (tmp_path / "store").mkdir()
    link, path = tmp_path / "link.json", tmp_path / "store/runs.json"
    link.symlink_to(path)
    for text in ("first", "second"):
        with replacing(link) as partial:
            partial.write_text(text)
        assert link.is_symlink() and path.read_text() == text
    assert list((tmp_path / "store").iterdir()) == [path]


@pytest.mark.parametrize(
    "name, error, sentence",
    [
        ("no/a.json", FileNotFoundError, "there is no folder {}/no to save a.json in; make it first"),
        ("", IsADirectoryError, "{} is a folder, so no file can be saved there"),
    ],
)
def test_what_cannot_be_a_file_is_said(name, error, sentence, tmp_path):
    for write in (file_to_write, lambda path: replacing(path).__enter__()):
        with pytest.raises(error, match=sentence.format(tmp_path)):
            write(tmp_path / name)
