"""The doctor's screen and the port map, in both languages and at both sizes."""

from __future__ import annotations

import pytest

from backend.domain.checkup import Listener
from backend.domain.doctor import Finding
from backend.domain.errors import RemoteFailed
from backend.domain.portmap import PortMap, PortRun, PortWindow
from pdtui.screens.doctor import DoctorScreen
from pdtui.screens.ports import PortsScreen
from pdtui.screens.text import TextScreen
from tests.tui.conftest import Start
from tests.tui.factories import DOCUMENTS, LOGS, site
from tests.tui.fake_client import FakeClient

pytestmark = pytest.mark.slow

BAD = "[bold]x[/] \x1b[31m"


def finding(host: str, check: str, verdict: str, seen: str, **more: object) -> Finding:
    return Finding.model_validate(
        {"host": host, "check": check, "verdict": verdict, "seen": seen, **more}
    )


@pytest.fixture
def fake() -> FakeClient:
    made = FakeClient(site(), documents=DOCUMENTS, logs=LOGS)
    names = sorted(made._hosts)
    made.findings = (
        finding(names[0], "ssh", "pass", "answers as gpu"),
        finding(names[1], "disk", "fail", "nothing can be written to .pdtui", remedy="Free it."),
        finding(names[1], "rdma", "warn", f"down: {BAD}", values={"ports": ["mlx5_1:1"]}),
        finding(names[1], "ssh", "pass", "answers as other"),
    )
    made.ports = {
        names[0]: PortMap(
            host=names[0], port_range=(40000, 40063), free=52, widest=40, tried=False,
            runs=(
                PortRun(first=40000, last=40000, kind="ours", holder="chat-decode-1", band="http",
                        listening=1),
                PortRun(first=40001, last=40008, kind="ours", holder="chat-decode-1",
                        band="side_channel"),
                PortRun(first=40009, last=40009, kind="foreign", holder=f"{BAD} (pid 7)"),
                PortRun(first=40010, last=40012, kind="free"),
                PortRun(first=40013, last=40013, kind="stuck"),
                PortRun(first=40014, last=40015, kind="claimed", holder="their-router-1"),
                PortRun(first=40016, last=40063, kind="free"),
            ),
            windows=(
                PortWindow(first=15000, last=17000, kind="engine", overlaps=False, count=1,
                           listeners=(Listener(port=15020, pid=3, name="VLLM::Worker"),)),
                PortWindow(first=32768, last=60999, kind="ephemeral", overlaps=True),
            ),
        )
    }  # fmt: skip
    return made


async def test_the_doctors_findings_the_worst_first_and_at_length(
    start: Start, fake: FakeClient
) -> None:
    async with start(fake, size=(120, 30)) as d:
        await d.press("2", "C")
        assert isinstance(d.console.screen, DoctorScreen)
        assert [r.cells[2].text for r in d.table.rows] == ["disk", "RDMA"]
        assert "2 well, 1 to look at, 1 failed" in d.message
        assert "[bold]x[/]" in d.text
        await d.press("enter")
        assert isinstance(d.console.screen, TextScreen)
        assert "Free it." in d.text
        await d.press("escape", "down", "enter")
        assert "mlx5_1:1" in d.text
        await d.press("escape", "a")
        assert len(d.table.rows) == 4
        await d.press("slash", *"answers", "enter")
        assert len(d.table.rows) == 2
        before = len(fake.calls)
        await d.press("t")
        assert fake.calls[before:] == [("doctor",)]


async def test_one_host_and_the_hosts_of_a_deployment(start: Start, fake: FakeClient) -> None:
    async with start(fake, size=(120, 30)) as d:
        await d.press("2", "c")
        assert ("doctor", sorted(fake._hosts)[0]) in fake.calls
        assert "All is well" in d.text
        await d.press("1", "C")
        assert fake.calls[-1][0] == "doctor"
        assert fake.calls[-1][1] in fake._groups


async def test_a_doctor_that_cannot_come_says_so(start: Start, fake: FakeClient) -> None:
    fake.errors["doctor"] = RemoteFailed.of("backend.timeout", "the backend did not answer.")
    async with start(fake, size=(120, 30)) as d:
        await d.press("2", "C")
        assert "did not answer" in d.words
        await d.press("escape")
        assert "could not be examined" in d.text
        await d.press("t")
        assert len(d.table.rows) == 2


@pytest.mark.parametrize("size", [(80, 24), (160, 50)])
async def test_the_port_map_draws_every_port(
    start: Start, fake: FakeClient, size: tuple[int, int]
) -> None:
    async with start(fake, size=size) as d:
        await d.press("2", "p")
        assert isinstance(d.console.screen, PortsScreen)
        assert d.line("40000  ").split(maxsplit=1)[1] == "●●●●●●●● ●✗···▲◐◐ ········ ········"
        assert d.line("40032  ").count("·") == 32
        assert "52 of 64 ports are free, 40 of them in a row" in d.text
        assert "40001-40008  chat-decode-1  side_channel  0/8 listen" in d.text
        assert "[bold]x[/]" in d.text
        assert "no python3" in d.text
        await d.press("G")
        assert "overlaps the service port range" in d.words
        assert "15020 VLLM::Worker" in d.words
        await d.press("t")
        assert fake.calls[-1] == ("ports", sorted(fake._hosts)[0])
        assert "looked at now" in d.message


async def test_in_chinese(start: Start, fake: FakeClient) -> None:
    from pdtui.i18n.catalog import use

    use("zh")
    try:
        async with start(fake, size=(100, 30)) as d:
            await d.press("2", "C")
            assert "磁盘" in d.text
            assert "失败" in d.text
            await d.press("escape", "p")
            assert "64 个端口中有 52 个空闲" in d.text
    finally:
        use("en")
