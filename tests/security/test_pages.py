"""Pages made of hostile profiles: no text of a profile becomes part of the page itself."""

from html.parser import HTMLParser

import pytest

from perun.plugin.api import ViewContext
from perun.plugin.registry import Registry
from perun.profile.factory import Profile

HOSTILE = (
    "<script>owned=1</script>", "</script><script>owned=2</script>", "<img src=x onerror=owned=3>",
    "\"'><svg onload=owned=4>", "<!--<script>", "]]>", "\u2028owned\u2029"
)  # fmt: skip


class Elements(HTMLParser):
    """Collects what would run: scripts, and attributes that call one."""

    def __init__(self) -> None:
        super().__init__()
        self.handlers: list[str] = []
        self.scripts: list[str] = []
        self._in_script = False

    def handle_starttag(self, tag, attributes):
        self._in_script = tag == "script"
        if self._in_script:
            self.scripts.append("")
        self.handlers += [f"{tag} {name}={value}" for name, value in attributes if "owned" in (value or "")
                          and name.startswith("on")]  # fmt: skip

    def handle_endtag(self, tag):
        self._in_script = False

    def handle_data(self, data):
        if self._in_script:
            self.scripts[-1] += data


def profile(text):
    made = Profile({
        "header": {"type": "memory", "cmd": text, "args": text, "workload": text, "units": {"memory": "B"}},
        "collector_info": {"name": text, "params": {text: text}},
        "postprocessors": [],
    })  # fmt: skip
    made.update_resources(
        [
            {
                "amount": 8 * number, "type": "memory",
                "uid": {"function": text, "source": text, "line": number},
                "subtype": "malloc", "address": 4096 * number, "snapshot": number, "timestamp": number,
                "structure-unit-size": number,
                "trace": [{"function": text, "source": text, "line": number}], "caller": text,
            }
            for number in range(1, 4)
        ]
    )  # fmt: skip
    return made


PAGES = (
    ("flamegraph", {}),
    ("heapmap", {}),
    ("callgraph", {}),
    ("bars", {"of": "amount", "per": "snapshot", "by": "uid"}),
    ("flow", {"of": "amount", "through": "snapshot", "by": "uid"}),
    ("scatter", {"of": "amount", "per": "snapshot"}),
)


@pytest.mark.parametrize(("view", "params"), PAGES, ids=[name for name, _ in PAGES])
def test_no_text_of_a_profile_becomes_part_of_the_page(view, params, tmp_path):
    plugin = Registry().get("view", view)
    fields = plugin.Params.__dataclass_fields__
    output = next(name for name in fields if "filename" in name or "output" in name)
    for number, text in enumerate(HOSTILE):
        target = tmp_path / f"{number}.html"
        given = {name: value for name, value in params.items() if name in fields}
        with (tmp_path / "out").open("w") as out:
            plugin.render(profile(text), plugin.Params(**{**given, output: str(target)}), out, ViewContext())
        page = target.read_text("utf-8")
        found = Elements()
        found.feed(page)
        assert found.handlers == [], text
        assert not any(script.strip().startswith("owned=") for script in found.scripts), text
        assert "<script>owned" not in page, text
