"""后端语句的中文。每条是后端英文句子的样式，与其中文；`s_` 开头的部分再次翻译。"""

from __future__ import annotations

import re

_TABLE: tuple[tuple[str, str], ...] = (
    # 说明
    (r"its host does not answer", "其主机没有应答"),
    (r"health path fails(?:: (?P<w>.+))?", "健康检查失败：{w}"),
    (r"exit code (?P<c>-?\d+)(?:: (?P<w>.+))?", "退出码 {c}：{w}"),
    (r"ended with exit code (?P<c>-?\d+)(?:: (?P<w>.+))?", "以退出码 {c} 结束：{w}"),
    (r"ended by signal (?P<c>\S+)(?:: (?P<w>.+))?", "被信号 {c} 结束：{w}"),
    (r"ended: (?P<w>.+)", "已结束：{w}"),
    (r"its instance directory is gone from the host; what is left of it is ended(?:: (?P<w>.+))?",
     "主机上的实例目录已不存在；其残留进程已结束：{w}"),
    (r"ended, and nothing on the host says why(?:: (?P<w>.+))?",
     "已结束，主机上没有任何信息说明原因：{w}"),
    (r"not looked at yet", "尚未查看"),
    (r"host\.\*: no host in the inventory", "host.*：清单中没有主机"),
    # 更改
    (r"(?P<p>[\w.\[\]-]+): removed \(was (?P<v>.*)\)", "{p}：已移除（原为 {v}）"),
    (r"(?P<p>[\w.\[\]-]+): removed (?P<v>.*)", "{p}：已移除 {v}"),
    (r"(?P<p>[\w.\[\]-]+): added (?P<v>.*)", "{p}：已添加 {v}"),
    # 策略
    (r"(?P<p>\S+) on both sides; per-role policy flags have no effect",
     "两侧均为 {p}；按角色设置的策略参数不起作用"),
    (r"prefill (?P<p>\S+), decode (?P<d>\S+)", "预填充 {p}，解码 {d}"),
    (r"as your own router decides", "由自定义 router 决定"),
    # 选择
    (r"it is for (?P<a>.+), not (?P<b>\S+)", "适用于 {a}，而不是 {b}"),
    (r"no host shows an accelerator; it needs (?P<v>\S+)", "没有主机显示加速器；它需要 {v}"),
    (r"it needs (?P<v>\S+) accelerators; the hosts have (?P<w>.+)",
     "需要 {v} 加速器；主机上是：{w}"),
    (r"(?P<m>.+) attaches no cache service", "{m} 不能接入缓存服务"),
    (r"(?P<m>\S+) cannot use (?P<p>\S+); it takes: (?P<w>.+)", "{m} 不能使用 {p}；可用：{w}"),
    (r"only (?P<r>\S+) can use (?P<p>\S+) in (?P<m>\S+)(?: \((?P<w>.+)\))?",
     "在 {m} 中只有 {r} 可以使用 {p}：{w}"),
    # 模式
    (r"vLLM with (?P<c>\w+)", "vLLM + {c}"),
    (r"SGLang with (?P<c>\w+)", "SGLang + {c}"),
    (r"vLLM-Ascend with (?P<c>\w+)", "vLLM-Ascend + {c}"),
    (r"Custom", "自定义"),
    (r"NIXL pulls KV from prefill; members join and leave the running router\.",
     "NIXL 从 prefill 拉取 KV；成员可随时加入或离开运行中的 router。"),
    (r"Mooncake pushes KV to decode; a change of members replaces the router\.",
     "Mooncake 把 KV 推送给 decode；成员变化时会更换 router。"),
    (r"Both sides start at once and meet over a bootstrap port; members join the running router\.",
     "两侧同时开始，通过 bootstrap 端口会合；成员可加入运行中的 router。"),
    (r"As sglang-mooncake over NIXL; an aborted request is not acknowledged to decode\.",
     "同 sglang-mooncake，但通过 NIXL；中止的请求不会通知 decode。"),
    (r"Mooncake over the NPUs' own network; the connector follows the model's KV layout\.",
     "Mooncake 走 NPU 自身的网络；连接器由模型的 KV 布局决定。"),
    (r"Your image and command; nothing is injected and the router is yours to keep up to date\.",
     "使用您自己的镜像和命令；不注入任何内容，router 由您自行维护。"),
    (r"rules both sides; per-role policy flags have no effect with --enable-igw",
     "对两侧生效；启用 --enable-igw 时按角色设置的策略参数不起作用"),
    (r"rules both sides; not passed unless set, so that the router's own default holds",
     "对两侧生效；不设置就不传递，由 router 自己的默认值决定"),
    (r"1 means no retry; 0 ends the router at its start",
     "1 表示不重试；0 会让 router 一启动就退出"),
)  # fmt: skip

SAID = tuple((re.compile(pattern, re.DOTALL), words) for pattern, words in _TABLE)
