"""The user's three questions answered with numbers, and what follows from the answers.

1. Do prefill and decode need different parameters? In a plain replica every prompt's prefill holds
   up the tokens of all others: its share of the time says how much the two get in each other's way.
2. Is the ratio of prompt to output far from 1:1? Only then do the two sides want other sizes.
3. Is the KV transfer fast enough? It must cost little beside the prefill that it saves.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

from backend.domain.advice.estimate import Rates
from backend.domain.advice.kv import KvSize
from backend.domain.advice.model import (
    Advice,
    Answer,
    Fact,
    Link,
    Question,
    Size,
    Source,
    Traffic,
    Verdict,
    Worth,
)
from backend.domain.advice.shown import count, duration, proportion, size
from backend.domain.words import SILENCE, Words, both, joined

FAR = 4.0
"""Prompt to output, or the other way round, from which on the two are far from 1:1."""
SHORT = 512
"""Tokens of prompt and answer together below which a plain replica is usually faster."""
CHEAP, DEAR = 0.25, 1.0
"""Transfer time as a part of prefill time: below the one it is cheap, from the other on it cancels
what prefill saves."""
FULL_LINK = 0.7
"""The part of a link from which on transfers wait for one another."""
CONFLICT = 0.1
"""The part of a plain replica's time that prefill takes, from which on decode suffers."""
BUSY = 0.7
"""How busy a member should be at most."""
MOST = 16
"""Members of a suggested ratio's larger side."""


@dataclass(frozen=True)
class Case:
    """Everything advice is made from; what is not known is None, or says why it is not."""

    deployment: str
    prefill: Size
    decode: Size
    kv: KvSize | Words
    traffic: Traffic
    link: Link
    rates: Rates
    rates_source: Source = ""

    @property
    def prefill_s(self) -> float | None:
        """Seconds of one prompt's prefill."""
        return _ratio(self.traffic.prompt_tokens, self.rates.prefill)

    @property
    def bytes_(self) -> float | None:
        """Bytes of one prompt's KV that travel."""
        if isinstance(self.kv, Words) or self.traffic.prompt_tokens is None:
            return None
        return self.kv.moved(self.traffic.prompt_tokens)

    @property
    def transfer_s(self) -> float | None:
        """Seconds of one prompt's transfer on the link alone."""
        return _ratio(self.bytes_, self.link.bytes_per_s)

    def members(self, side: str) -> float | None:
        """How many members of a side the traffic keeps busy."""
        tokens = self.traffic.prompt_tokens if side == "prefill" else self.traffic.output_tokens
        rate = self.rates.prefill if side == "prefill" else self.rates.decode
        if tokens is None or self.traffic.rps is None:
            return None
        return _ratio(tokens * self.traffic.rps, rate)


def advise(case: Case) -> Advice:
    """The three answers, and what they come to."""
    answers = (_parameters(case), _ratios(case), _transfer(case))
    worth, text = _worth(case, answers)
    return Advice(
        deployment=case.deployment,
        worth=worth,
        text=text,
        answers=answers,
        facts=tuple(_facts(case)),
        suggestion=_suggestion(case, worth),
        missing=tuple(_missing(case)),
    )


def _parameters(case: Case) -> Answer:
    differ = (case.prefill.parameters, case.prefill.tensor, case.prefill.accelerators) != (
        case.decode.parameters, case.decode.tensor, case.decode.accelerators,
    )  # fmt: skip
    share = _prefill_share(case)
    have = (
        both("The roles are set up differently now.", "两个角色目前的设置不同。")
        if differ
        else both("Both roles run with the same parameters now.", "两个角色目前使用相同参数。")
    )
    if share is None:
        tell = both(
            "How much prefill would hold up decode in a plain replica is not known.",
            "不知道在单体副本中 prefill 会在多大程度上拖慢 decode。",
        )
        return _answer("parameters", "yes" if differ else "unknown", joined([have, tell]))
    percent = round(100 * share)
    words = both(
        "In a plain replica prefill would take {percent} % of the time and hold up every other "
        "answer meanwhile.",
        "在单体副本中 prefill 会占 {percent}% 的时间，期间其他回答都被拖住。",
        percent=percent,
    )
    if share >= CONFLICT:
        return _answer("parameters", "yes", joined([words, have]))
    quiet = both("One set of parameters serves both well.", "一组参数足以同时满足两者。")
    return _answer("parameters", "no", joined([words, quiet]))


def _prefill_share(case: Case) -> float | None:
    """The part of its time that a plain replica of the same size would spend on prefill."""
    prefill = case.prefill_s
    decode = _ratio(case.traffic.output_tokens, case.rates.decode)
    if prefill is None or decode is None or prefill + decode <= 0:
        return None
    return prefill / (prefill + decode)


def _ratios(case: Case) -> Answer:
    prompt, output = case.traffic.prompt_tokens, case.traffic.output_tokens
    if prompt is None or output is None or min(prompt, output) <= 0:
        return _answer(
            "ratio",
            "unknown",
            both(
                "No traffic has been seen or given, so the ratio is not known.",
                "尚无流量数据，比例未知。",
            ),
        )
    values = {"prompt": count(prompt), "output": count(output), "ratio": proportion(prompt, output)}
    if prompt + output < SHORT:
        return _answer(
            "ratio",
            "no",
            both(
                "{prompt} tokens in and {output} out ({ratio}) are short: a plain replica is "
                "usually faster.",
                "输入 {prompt}、输出 {output} 个 token（{ratio}）都较短：不分离通常更快。",
                **values,
            ),
        )
    far = max(prompt, output) / min(prompt, output) >= FAR
    if far:
        words = both(
            "{prompt} tokens in and {output} out ({ratio}) are far from 1:1: the sides want other "
            "sizes.",
            "输入 {prompt}、输出 {output} 个 token（{ratio}）远离 1:1：两侧需要不同规模。",
            **values,
        )
    else:
        words = both(
            "{prompt} tokens in and {output} out ({ratio}) are near 1:1: sizing the sides apart "
            "gains little.",
            "输入 {prompt}、输出 {output} 个 token（{ratio}）接近 1:1：分别调整规模收益不大。",
            **values,
        )
    return _answer("ratio", "yes" if far else "no", words)


def _transfer(case: Case) -> Answer:
    moved, seconds = case.bytes_, case.transfer_s
    if isinstance(case.kv, Words):
        return _answer(
            "transfer",
            "unknown",
            Words(
                en=f"The size of a prompt's KV is not known: {case.kv.en}.",
                zh=f"提示词 KV 的大小未知：{case.kv.zh}。",
            ),
        )
    if moved is None or seconds is None:
        return _answer(
            "transfer",
            "unknown",
            both(
                "A prompt token makes {size} of KV; {what} is not known.",
                "每个提示词 token 产生 {size} 的 KV；{what_zh}未知。",
                size=size(case.kv.moved(1) - case.kv.fixed * case.kv.copies),
                what="the prompts' length" if moved is None else "the link's speed",
                what_zh="提示词长度" if moved is None else "链路速度",
            ),
        )
    return _compared(case, moved, seconds)


def _compared(case: Case, moved: float, seconds: float) -> Answer:
    cost = both(
        "A prompt's {size} of KV take {seconds} on the link.",
        "每个提示词的 {size} KV 在链路上需 {seconds}。",
        size=size(moved),
        seconds=duration(seconds),
    )
    load = seconds * case.traffic.rps if case.traffic.rps is not None else None
    if load is not None and load >= FULL_LINK:
        full = both(
            "At {rps} requests a second that is {percent} % of it: transfers wait for one another.",
            "每秒 {rps} 个请求将占用链路的 {percent}%：传输会互相等待。",
            rps=count(case.traffic.rps or 0),
            percent=round(100 * load),
        )
        return _answer("transfer", "no", joined([cost, full]))
    prefill = case.prefill_s
    if prefill is None:
        slow = seconds >= 1.0
        tell = both("How long its prefill takes is not known.", "其 prefill 所需时间未知。")
        return _answer("transfer", "no" if slow else "unknown", joined([cost, tell]))
    part = seconds / prefill
    against = both(
        "Its prefill takes {prefill}: the transfer adds {percent} %.",
        "其 prefill 需 {prefill}：传输增加 {percent}%。",
        prefill=duration(prefill),
        percent=round(100 * part) if part >= 0.01 else "<1",
    )
    verdict: Verdict = "yes" if part < CHEAP else "no" if part >= DEAR else "unknown"
    between = both(
        "That is neither cheap nor prohibitive: measure it.", "既不便宜也不至于不可行：请实测。"
    )
    return _answer(
        "transfer", verdict, joined([cost, against, *([between] * (verdict == "unknown"))])
    )


def _worth(case: Case, answers: tuple[Answer, ...]) -> tuple[Worth, Words]:
    total = (
        case.prefill.members * case.prefill.accelerators
        + case.decode.members * case.decode.accelerators
    )
    if total == 1:
        return "no", both(
            "A single accelerator cannot be divided: run it plain.", "只有一个加速器：不应分离。"
        )
    verdicts = {a.question: a.verdict for a in answers}
    if verdicts["transfer"] == "no":
        return "no", both(
            "The transfer costs more than the separation gains on this link.",
            "在该链路上传输成本超过分离的收益。",
        )
    if case.traffic.prompt_tokens is not None and case.traffic.output_tokens is not None and (
        case.traffic.prompt_tokens + case.traffic.output_tokens < SHORT
    ):  # fmt: skip
        return "no", both(
            "Prompts and answers are too short for the separation to pay.",
            "提示词和回答都太短，分离得不偿失。",
        )
    if verdicts["parameters"] == "no" and verdicts["ratio"] == "no":
        return "no", both(
            "The two phases ask for the same: separating them adds cost and no throughput.",
            "两个阶段的需求相同：分离只增加成本，不增加吞吐量。",
        )
    if verdicts["transfer"] == "yes" and "yes" in (verdicts["parameters"], verdicts["ratio"]):
        return "yes", both(
            "Disaggregation fits this load. Compare with plain replicas under the same load before "
            "you rely on it.",
            "该负载适合分离。依赖它之前，请在相同负载下与不分离的副本比较。",
        )
    return "unclear", both(
        "Too little is known, or the numbers lie too close, to say.",
        "已知信息不足，或数值过于接近，无法判断。",
    )


def _suggestion(case: Case, worth: str) -> Words:
    prefill, decode = case.members("prefill"), case.members("decode")
    if worth == "no":
        return both(
            "Deploy it without disaggregation: the same accelerators as plain replicas.",
            "不使用分离部署：将相同的加速器作为普通副本使用。",
        )
    share = _prefill_share(case)
    if share is None:
        return SILENCE
    total = case.prefill.members + case.decode.members
    p, d = _whole(share, total)
    ratio = both("The load asks for about {p}:{d}", "负载约需 {p}:{d}", p=p, d=d)
    now = both(
        " (now {a}:{b}).", "（目前 {a}:{b}）。", a=case.prefill.members, b=case.decode.members
    )
    words = [Words(en=ratio.en + now.en, zh=ratio.zh + now.zh)]
    if prefill is not None and decode is not None:
        words.append(
            both(
                "At most {busy} % busy it takes {p} prefill and {d} decode members.",
                "忙碌度不超过 {busy}% 时需要 {p} 个 prefill 和 {d} 个 decode 成员。",
                busy=round(100 * BUSY),
                p=max(1, math.ceil(prefill / BUSY)),
                d=max(1, math.ceil(decode / BUSY)),
            )
        )
    return joined(words)


def _whole(share: float, total: int) -> tuple[int, int]:
    """The ratio of whole members nearest to a share, of as many members as there are, or of more
    where one side would be less than a member."""
    best = (1, 1)
    error = math.inf
    for size_ in range(2, max(total, 2) + MOST):
        p = min(max(1, round(share * size_)), size_ - 1)
        miss = abs(p / size_ - share) + 0.02 * abs(size_ - total)
        if miss < error and p <= MOST and size_ - p <= MOST:
            best, error = (p, size_ - p), miss
    return best


def _facts(case: Case) -> Iterator[Fact]:
    t = case.traffic
    for name, value in (("prompt_tokens", t.prompt_tokens), ("output_tokens", t.output_tokens)):
        if value is not None:
            yield Fact(name=name, value=value, shown=count(value), source=t.source)
    if t.rps is not None:
        yield Fact(name="rps", value=t.rps, shown=f"{t.rps:.3g}/s", source=t.source)
    if not isinstance(case.kv, Words):
        one = case.kv.per_token + case.kv.windowed
        yield Fact(name="kv_per_token", value=one, shown=size(one), source="")
        if case.kv.copies > 1:
            moved = one * case.kv.copies
            yield Fact(name="kv_moved_per_token", value=moved, shown=size(moved), source="")
    if case.link.bytes_per_s is not None:
        shown = f"{case.link.bytes_per_s * 8 / 1e9:.3g} Gbit/s"
        yield Fact(name="link", value=case.link.bytes_per_s, shown=shown, source=case.link.source)
    for name, rate in (("prefill_rate", case.rates.prefill), ("decode_rate", case.rates.decode)):
        if rate is not None:
            shown = f"{count(rate)} tokens/s"
            yield Fact(name=name, value=rate, shown=shown, source=case.rates_source)
    for side, there in (("prefill", case.prefill), ("decode", case.decode)):
        wanted = case.members(side)
        if wanted is not None and there.members:
            use = wanted / there.members
            yield Fact(
                name=f"{side}_busy", value=use, shown=f"{100 * use:.0f} %", source="estimated"
            )


def _missing(case: Case) -> Iterator[Words]:
    if case.traffic.prompt_tokens is None or case.traffic.output_tokens is None:
        yield both(
            "the traffic: let requests come, or give --prompt-tokens and --output-tokens",
            "流量：等待请求到来，或给出 --prompt-tokens 与 --output-tokens",
        )
    if isinstance(case.kv, Words):
        yield Words(en=f"the model's layout: {case.kv.en}", zh=f"模型结构：{case.kv.zh}")
    if case.link.bytes_per_s is None:
        yield both("the link's speed: give --link-gbit", "链路速度：给出 --link-gbit")
    if case.rates.prefill is None or case.rates.decode is None:
        yield both(
            "what a member does a second: give --prefill-rate and --decode-rate",
            "单个成员每秒处理量：给出 --prefill-rate 与 --decode-rate",
        )


def _answer(question: Question, verdict: Verdict, text: Words) -> Answer:
    return Answer(question=question, verdict=verdict, text=text)


def _ratio(a: float | None, b: float | None) -> float | None:
    return a / b if a is not None and b is not None and b > 0 else None
