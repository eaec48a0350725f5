"""The pictures: one small site at a fixed moment, each main view at two sizes."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from pathlib import Path

from pdtui.app import Console
from pdtui.i18n import Language, use
from pdtui.screens import form
from screenshots.shoot import Scene
from tests.tui.factories import NOW
from tests.tui.fake_client import FakeClient
from tests.tui.pictured import pictured

SIZES = ((80, 24), (160, 50))


def console(theme: str, language: Language) -> Callable[[], Console]:
    """Builds the console in `theme` on a client that holds the site in memory."""

    async def client() -> FakeClient:
        return pictured()

    def build() -> Console:
        use(language)
        form.CHECK_S = 0.001  # a picture waits for no typing
        nowhere = Path(tempfile.mkdtemp(prefix="pdtui-shots-"))
        return Console(client, theme=theme, clock=lambda: NOW, state_dir=nowhere)

    return build


QWEN = ("G",)
"""The group that serves is the last of the list."""

DECODE = (
    *QWEN, "E", "tab", "tab", "tab", *(["down"] * 7), "enter", "ctrl+u", *"--max-model-len",
    "space", *"4096", "enter",
)  # fmt: skip
"""A decode override whose context is not prefill's."""

VIEWS: dict[str, tuple[tuple[str, ...], str]] = {
    "groups": (QWEN, "Partially ready"),
    "group": ((*QWEN, "enter"), "qwen3-32b-d0"),
    "forming": (("j", "j", "enter"), "glm-5-d1"),
    "config-changed": (("j", "enter"), "Config changed"),
    "scale": ((*QWEN, "enter", "S", "plus"), "Scale qwen3-32b"),
    "restart": ((*QWEN, "enter", "r"), "Restart qwen3-32b?"),
    "logs": ((*QWEN, "enter", "l"), "following"),
    "hosts": (("2",), "key unknown"),
    "events": (("3",), "qwen3-32b answers at"),
    "help": (("question_mark",), "Keys"),
    "form": ((*QWEN, "E"), "Served model name"),
    "form-modes": ((*QWEN, "E", "tab", "down"), "vllm-ascend-mooncake"),
    "form-decode": (DECODE, "1 refused"),
    "form-router": ((*QWEN, "E", "tab", "tab", "tab", "tab"), "generated"),
    "save": ((*QWEN, "E", "tab", "tab", "enter", "ctrl+u", "3", "enter", "W"), "Save qwen3-32b?"),
    "modes": (("4",), "vllm-ascend-mooncake"),
    "history": ((*QWEN, "H"), "history"),
    "merged-log": ((*QWEN, "m"), "in one"),
    "add-host": (("2", "n"), "Add a host"),
    "form-command": ((*QWEN, "E", "tab", "tab", "tab", "v"), "kv_consumer"),
    "instances": (("5",), "glm-5-d1"),
    "caches": (("6",), "mooncake"),
    "edit-cache": (("6", "down", "E"), "Edit pool"),
    "settings": (("7",), "State directory"),
    "first-error": (("j", "f"), "Address already in use"),
    "watch": ((*QWEN, "w"), "PD effectiveness"),
    "watch-fault": (("j", "w"), "PD effectiveness"),
    "alerts": (("A",), "crash"),
    "diagnosis": (("j", "i"), "do"),
    "advice": ((*QWEN, "a"), "Is the KV transfer fast enough?"),
    "doctor": (("2", "C"), "failed"),
    "doctor-finding": (("2", "C", "j", "j", "enter"), "Remedy"),
    "ports": (("2", "p"), "gpu-1"),
    "many": (("space", "space", "space", "r"), "Left out"),
}
"""Name of a view -> the keys that lead there from the first screen, and words it must show."""


CHINESE = {
    "groups": "部分就绪",
    "group": "运行中",
    "config-changed": "配置已更改",
    "form-modes": "方案",
    "form-decode": "拒绝",
    "form-router": "自动生成",
    "scale": "副本数",
    "restart": "重启整个组",
    "help": "按键",
    "instances": "未就绪",
    "settings": "状态目录",
    "save": "保存",
    "events": "提供服务",
    "hosts": "加速卡",
    "caches": "缓存服务",
    "watch": "有效性",
    "watch-fault": "有效性",
    "alerts": "告警",
    "diagnosis": "原因",
    "advice": "KV 传输是否足够快？",
    "doctor": "失败",
    "doctor-finding": "处理",
    "ports": "端口",
}
"""Views that are drawn in Chinese too, and words they must show."""


def scene(
    view: str, theme: str, size: tuple[int, int], name: str, language: Language = "en"
) -> Scene:
    """The picture `name` of a view."""
    keys, shows = VIEWS[view]
    shows = CHINESE[view] if language == "zh" else shows
    return Scene(f"{name}-{size[0]}x{size[1]}", console(theme, language), size, keys, shows)


SCENES = [
    *(scene(view, "dark", size, view) for view in VIEWS for size in SIZES),
    *(scene(v, "dark", size, f"{v}-zh", "zh") for v in CHINESE for size in SIZES),
    scene("form-decode", "light", (160, 50), "form-decode-light"),
    scene("groups", "light", (80, 24), "groups-light"),
    scene("group", "light", (160, 50), "group-light"),
]
