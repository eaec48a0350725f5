"""Simplified Chinese of diagnosis and advice."""

from __future__ import annotations

TEXT: dict[str, str] = {
    "cmd.diagnose": "诊断",
    "cmd.diagnose.help": "说明为何不能服务：日志中的首个原因及处理办法",
    "diagnosis.title": "诊断",
    "diagnosis.causes": "{name} 的日志中有 {count} 个首要原因",
    "diagnosis.clear": "{name} 的日志均未报告错误",
    "diagnosis.nothing": "日志未报告错误",
    "diagnosis.peer": "由 {peer} 引起",
    "diagnosis.unknown": "没有规则认识此行；它是日志中最早的错误",
    "diagnosis.line": "第 {line} 行",
    "diagnosis.times": "共 {count} 次",
    "diagnosis.attempt": "第 {number} 次启动",
    "diagnosis.cause": "原因",
    "diagnosis.where": "位置",
    "diagnosis.log": "日志",
    "diagnosis.remedy": "处理",
    "diagnosis.also": "另有",
    "diagnosis.rule": "规则",
    "diagnosis.before": "之前",
    "diagnosis.explains": "也解释了 {name} 的 {rule}",
    "diagnosis.cut": "仅读取了日志的开头和结尾",
}
