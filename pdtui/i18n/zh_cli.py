"""Simplified Chinese of the command line."""

from __future__ import annotations

TEXT: dict[str, str] = {
    "cli.error": "错误",
    "cli.examples": "示例：",
    "cli.unwatched": "提示：没有守护进程在运行，因此现在无人看护各组；可运行 `pdtui daemon`。",
    "cli.no_terminal": "未询问“{question}”：标准输入不是终端，无人可以回答。",
    "cli.no_terminal.remedy": "加上 {flag} 即可继续。",
    "cli.no_screen": "控制台需要终端，而这里没有。",
    "cli.no_screen.remedy": "请使用命令，例如 `pdtui get`；`pdtui --help` 列出全部命令。",
}
