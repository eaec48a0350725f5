"""Sentences of the marks beside a status, and of what taking an instance out means."""

from __future__ import annotations

TEXT: dict[str, tuple[str, str]] = {
    "mark.config_changed": (
        "The saved configuration is not what runs. Restart applies it; until then no role scales "
        "up.", "已保存的配置与运行中的不同。重启后生效；在此之前任何角色都不能扩容。"),
    "mark.mode_gone": (
        "The mode {mode} is not in the catalogue any more. The group runs on, and is healed and "
        "scaled, by the recipe it was formed with; a restart could not form it again. Put the mode "
        "back, or save the deployment with another one.",
        "目录中已没有模式 {mode}。该组按组建时的配方继续运行，仍可恢复和伸缩；重启将无法再组建它。"
        "请恢复该模式，或改用其他模式保存部署。"),
    "mark.registration": (
        "waiting for the router's registry and one answered request",
        "等待 router 的成员登记和一次成功应答的请求"),
    "mark.by_hand": ("The router is kept up by hand. Tell it: {todo}.",
                     "Router 由人工维护。请告知它：{todo}。"),
    "mark.by_hand.add": ("add {peers}", "添加 {peers}"),
    "mark.by_hand.remove": ("remove {peers}", "移除 {peers}"),
    "mark.by_hand.both": ("add {added}; remove {removed}", "添加 {added}；移除 {removed}"),
    "mark.blocked.deletion": ("The deletion waits for {hosts} to confirm that its instances ended.",
                              "删除正在等待 {hosts} 确认其实例已结束。"),
    "mark.blocked.pause": ("The pause waits for {hosts} to confirm that its instances ended.",
                           "暂停正在等待 {hosts} 确认其实例已结束。"),
    "mark.blocked.restart": ("The restart waits for {hosts} to confirm that its instances ended.",
                             "重启正在等待 {hosts} 确认其实例已结束。"),
    "mark.lost": ("{hosts} does not answer; its instances are left as they are.",
                  "{hosts} 无响应；其上的实例保持原样。"),
    "mark.lost.router": ("The router {router} may still answer there, so no other one is started.",
                         "Router {router} 可能仍在那里应答，因此不另行启动。"),
    "mark.lost.way": ("If it stays away: `pdtui hosts fence {host}` places them elsewhere.",
                      "若主机不再恢复：用 `pdtui hosts fence {host}` 将它们安置到别处。"),
    "mark.crash_loop": ("{instance} ended {failures} times without serving: {note}",
                        "{instance} 未提供服务就退出了 {failures} 次：{note}"),
    "mark.draining": ("finishing what they hold: {instances}", "正在完成已有请求：{instances}"),

    "out.silent": (
        "{host} does not answer: {instance} is given up only once that host confirms its end; with "
        "force it is given up now.",
        "{host} 无响应：只有该主机确认 {instance} 已结束才会放弃它；强制则立即放弃。"),
    "out.forced": (
        "{host} does not answer: {instance} may go on there unseen until it is killed, the moment "
        "the host answers.",
        "{host} 无响应：{instance} 可能仍在那里运行，直到主机恢复时被立即终止。"),
    "out.stale": (
        "{instance} will not be re-created before the restart: the saved configuration is not what "
        "runs.", "重启前不会重建 {instance}：已保存的配置与运行中的不同。"),
    "out.last": ("No {role} member is left: the group answers nothing until a new one is ready.",
                 "没有剩余的 {role} 成员：在新成员就绪前，该组无法应答。"),
    "out.last_stale": ("No {role} member is left: the group answers nothing until the restart.",
                       "没有剩余的 {role} 成员：在重启前，该组无法应答。"),
    "out.replaced": (
        "The router is replaced for it, and again for the new member: requests in that moment "
        "fail, the members keep running.",
        "Router 会因此替换一次，新成员加入时再替换一次：其间的请求会失败，成员保持运行。"),
    "out.by_hand": (
        "The router is kept up by hand: tell it to forget {url} now, and of the new member once it "
        "is ready.", "Router 由人工维护：请现在让它移除 {url}，并在新成员就绪后告知它。"),
    "out.router": (
        "The endpoint answers nothing until the new router serves. It is placed and started again "
        "with the members that are ready.",
        "新 router 提供服务前，端点无法应答。它会重新安置，并以已就绪的成员启动。"),
    "out.router_by_hand": (
        "The endpoint answers nothing until the new router serves. It is placed and started again "
        "with the members that are ready; it is told of them as it starts.",
        "新 router 提供服务前，端点无法应答。它会重新安置，并以已就绪的成员启动；启动时即获知"
        "这些成员。"),
}  # fmt: skip
