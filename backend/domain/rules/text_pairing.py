"""Sentences of the pairing rules: message and remedy, by rule and case, in each language."""

from __future__ import annotations

TEXT: dict[str, dict[str, tuple[str, str]]] = {
    "pairing.max_model_len:differ": {
        "en": ("prefill serves a context of {prefill} tokens and decode one of {decode}, so a "
               "prompt longer than {shorter} fails after its prefill is paid for.",
               "Give both roles the same {flag}."),
        "zh": ("prefill 的上下文长度是 {prefill}，decode 的是 {decode}：超过 {shorter} "
               "的提示词会在 prefill 计算完成之后失败。",
               "两个角色请使用相同的 {flag}。"),
    },
    "pairing.max_model_len:silent": {
        "en": ("prefill's context length is {prefill} and decode's is {decode}, and the "
               "configuration of {model} could not be read to tell what {silent} will serve.",
               "Write {flag} for {silent} as well, or make the model readable on a host."),
        "zh": ("prefill 的上下文长度：{prefill}，decode 的：{decode}；读不到 {model} "
               "的配置，因此不知道 {silent} 的实际长度。",
               "请为 {silent} 也写明 {flag}，或让某台主机上可以读到该模型。"),
    },
    "pairing.max_model_len:auto": {
        "en": ("prefill's context length is {prefill} and decode's is {decode}, and `auto` is "
               "whatever fits into the memory that is left at the start.",
               "Write the same number for {flag} on both roles."),
        "zh": ("prefill 的上下文长度：{prefill}，decode 的：{decode}；`auto` "
               "取决于启动时剩余的显存。",
               "请在两个角色上为 {flag} 写同一个数字。"),
    },
    "pairing.max_model_len:unreadable": {
        "en": ("prefill's context length is {prefill} and decode's is {decode}, and one of them "
               "is no length an engine takes.",
               "Write {flag} as a number, 128k (decimal) or 32K (binary)."),
        "zh": ("prefill 的上下文长度：{prefill}，decode 的：{decode}；"
               "其中有一个不是引擎能接受的长度。",
               "{flag} 请写数字、128k（十进制）或 32K（二进制）。"),
    },
    "pairing.tensor_parallel:decode_narrower": {
        "en": ("decode's tensor parallel size {decode} is smaller than prefill's {prefill}, and "
               "with {mode} that ends as an error inside decode.",
               "Give decode at least {prefill}, or prefill at most {decode}."),
        "zh": ("decode 的张量并行大小 {decode} 小于 prefill 的 {prefill}；在 {mode} "
               "模式下会表现为 decode 内部错误。",
               "请让 decode 至少为 {prefill}，或让 prefill 至多为 {decode}。"),
    },
    "pairing.tensor_parallel:prefill_narrower": {
        "en": ("prefill's tensor parallel size {prefill} is smaller than decode's {decode}, and "
               "with {mode} each decode rank gathers from prefill's ranks.",
               "Give prefill at least {decode}, or decode at most {prefill}."),
        "zh": ("prefill 的张量并行大小 {prefill} 小于 decode 的 {decode}；在 {mode} "
               "模式下，每个 decode rank 要从 prefill 的各 rank 收集数据。",
               "请让 prefill 至少为 {decode}，或让 decode 至多为 {prefill}。"),
    },
    "pairing.tensor_parallel:unknown": {
        "en": ("prefill's tensor parallel size is {prefill} and decode's is {decode}, so which "
               "one is larger cannot be told.",
               "Write the size as a number on both roles."),
        "zh": ("prefill 的张量并行大小：{prefill}，decode 的：{decode}；无法判断哪个更大。",
               "请在两个角色上都写成数字。"),
    },
    "pairing.tensor_parallel:per_head": {
        "en": ("prefill's tensor parallel size is {prefill} and decode's {decode}, so KV travels "
               "head by head, which becomes slow and breaks down under load.",
               "Use one size on both sides, unless few requests run at a time."),
        "zh": ("prefill 的张量并行大小是 {prefill}，decode 的是 {decode}：KV "
               "将逐个注意力头传输，高负载下会变慢甚至崩溃。",
               "除非并发很低，否则两侧请使用相同大小。"),
    },
    "pairing.tp_divisibility:heads": {
        "en": ("the model has {heads} attention heads, which {role}'s tensor parallel size {size} "
               "does not divide, so the engine ends at its start.",
               "Choose a size for {role} that divides {heads}."),
        "zh": ("模型有 {heads} 个注意力头，不能被 {role} 的张量并行大小 {size} "
               "整除，引擎会在启动时退出。",
               "请为 {role} 选择能整除 {heads} 的大小。"),
    },
    "pairing.tp_divisibility:ranks": {
        "en": ("prefill's tensor parallel size {prefill} and decode's {decode} do not divide each "
               "other, which ends the first transfer.",
               "Choose sizes of which one is a multiple of the other."),
        "zh": ("prefill 的张量并行大小 {prefill} 与 decode 的 {decode} 不能整除，"
               "首次传输就会失败。",
               "请选择成倍数关系的大小。"),
    },
    "pairing.tp_divisibility:replicated": {
        "en": ("prefill's tensor parallel size {prefill} is larger than decode's {decode} and than "
               "the model's {kv_heads} KV heads, which decode cannot read.",
               "Give prefill at most {kv_heads}, or both roles the same size."),
        "zh": ("prefill 的张量并行大小 {prefill} 大于 decode 的 {decode}，也大于模型的 {kv_heads} "
               "个 KV 头，decode 无法读取。",
               "请让 prefill 至多为 {kv_heads}，或两侧使用相同大小。"),
    },
    "pairing.tp_divisibility:few_kv_heads": {
        "en": ("decode's tensor parallel size {decode} is larger than the model's {kv_heads} KV "
               "heads and differs from prefill's {prefill}, which some engine versions cannot "
               "pair.",
               "Try it with a canary, or give both roles the same size."),
        "zh": ("decode 的张量并行大小 {decode} 大于模型的 {kv_heads} 个 KV 头，且与 prefill 的 "
               "{prefill} 不同，某些引擎版本无法配对。",
               "请用探测请求验证，或两侧使用相同大小。"),
    },
    "pairing.data_parallel:dense": {
        "en": ("{role} runs {size} data parallel ranks of {model}, a model without experts, and "
               "all its ranks would bind the same port.",
               "Set {role}'s data parallel size to 1 and its replicas higher."),
        "zh": ("{role} 以 {size} 个数据并行 rank 运行 {model}，而它不是专家（MoE）模型：所有 rank "
               "会绑定同一个端口。",
               "请将 {role} 的数据并行大小设为 1，改为增加副本数。"),
    },
    "pairing.data_parallel:dense_unknown": {
        "en": ("{role} runs {size} data parallel ranks, and the configuration of {model} could not "
               "be read to tell whether it has experts, as that needs.",
               "Make the model readable on a host, or set the size to 1."),
        "zh": ("{role} 使用 {size} 个数据并行 rank，而读不到 {model} "
               "的配置，无法确认它是专家（MoE）模型。",
               "请让某台主机上可以读到该模型，或将大小设为 1。"),
    },
    "pairing.data_parallel:router": {
        "en": ("the router deals to {ranks} ranks on both sides, but prefill has {prefill} data "
               "parallel ranks and decode {decode}.",
               "Give both roles {ranks}, or take --intra-node-data-parallel-size out."),
        "zh": ("router 在两侧都按 {ranks} 个 rank 分发，但 prefill 的数据并行大小是 {prefill}，"
               "decode "
               "的是 {decode}。",
               "请两侧都设为 {ranks}，或去掉 --intra-node-data-parallel-size。"),
    },
    "pairing.dtype:differ": {
        "en": ("prefill computes in {prefill} and decode in {decode}, so the KV of one means "
               "nothing to the other.",
               "Give both roles the same --dtype."),
        "zh": ("prefill 的数据类型是 {prefill}，decode 的是 {decode}，一侧的 KV 在另一侧没有意义。",
               "两个角色请使用相同的 --dtype。"),
    },
    "pairing.dtype:auto": {
        "en": ("prefill computes in {prefill} and decode in {decode}, and what `auto` becomes is "
               "not known from the model's configuration.",
               "Write the same --dtype on both roles, or make the model readable on a host."),
        "zh": ("prefill 的数据类型：{prefill}，decode 的：{decode}；从模型配置中无法得知 `auto` "
               "的结果。",
               "请在两个角色上写同一个 --dtype，或让某台主机上可以读到该模型。"),
    },
    "pairing.kv_cache_dtype:differ": {
        "en": ("prefill keeps KV as {prefill} and decode as {decode}, so every transfer is "
               "rejected.",
               "Give both roles the same --kv-cache-dtype."),
        "zh": ("prefill 的 KV 缓存数据类型是 {prefill}，decode 的是 {decode}，每次传输都会被拒绝。",
               "两个角色请使用相同的 --kv-cache-dtype。"),
    },
    "pairing.kv_cache_dtype:auto": {
        "en": ("prefill keeps KV as {prefill} and decode as {decode}, and what `auto` becomes is "
               "the engine's choice.",
               "Write the same --kv-cache-dtype on both roles."),
        "zh": ("prefill 的 KV 缓存数据类型：{prefill}，decode 的：{decode}；`auto` 由引擎决定。",
               "请在两个角色上写同一个 --kv-cache-dtype。"),
    },
    "pairing.block_size:differ": {
        "en": ("prefill cuts KV into blocks of {prefill} tokens and decode into blocks of "
               "{decode}, so blocks do not match.",
               "Give both roles the same block (page) size."),
        "zh": ("prefill 的块大小是 {prefill}，decode 的是 {decode}，块无法对应。",
               "两个角色请使用相同的块（页）大小。"),
    },
    "pairing.block_size:one_side": {
        "en": ("prefill's block size is {prefill} and decode's is {decode}, and the engine's own "
               "choice for the one that is not set is not known.",
               "Write the same block (page) size on both roles."),
        "zh": ("prefill 的块大小：{prefill}，decode 的：{decode}；未设置的一侧由引擎决定，"
               "无法得知。",
               "请在两个角色上写同一个块（页）大小。"),
    },
    "pairing.attention_backend:differ": {
        "en": ("prefill computes attention with {prefill} and decode with {decode}, so every "
               "handshake fails.",
               "Name the same --attention-backend on both roles."),
        "zh": ("prefill 的注意力后端是 {prefill}，decode 的是 {decode}，每次握手都会失败。",
               "请在两个角色上指定相同的 --attention-backend。"),
    },
    "pairing.attention_backend:unknown": {
        "en": ("prefill's attention backend is {prefill} and decode's is {decode}, and whether "
               "they end up the same is the engine's choice.",
               "Name the same --attention-backend on both roles."),
        "zh": ("prefill 的注意力后端：{prefill}，decode 的：{decode}；最终是否一致由引擎决定。",
               "请在两个角色上指定相同的 --attention-backend。"),
    },
    "pairing.attention_backend:invariant": {
        "en": ("batch invariance is {prefill} on prefill and {decode} on decode, and it changes "
               "which attention backend the engine chooses.",
               "Set VLLM_BATCH_INVARIANT alike, or name --attention-backend on both roles."),
        "zh": ("批次不变性在 prefill 上为{prefill}，在 decode 上为{decode}，"
               "它会影响引擎选择的注意力后端。",
               "请将 VLLM_BATCH_INVARIANT 设为一致，或在两个角色上指定 --attention-backend。"),
    },
    "pairing.engine_version:differ": {
        "en": ("prefill runs engine version {prefill} and decode {decode}, so every handshake "
               "fails.",
               "Use one engine version for both roles."),
        "zh": ("prefill 的引擎版本是 {prefill}，decode 的是 {decode}，每次握手都会失败。",
               "两个角色请使用同一个引擎版本。"),
    },
    "pairing.engine_version:hosts": {
        "en": ("host {host} has engine version {version} and host {other_host} has "
               "{other_version}, so members on them reject each other's handshake.",
               "Install one version, or select hosts that have the same."),
        "zh": ("主机 {host} 的引擎版本是 {version}，主机 {other_host} 的是 "
               "{other_version}，两处的成员会互相拒绝握手。",
               "请安装同一版本，或选择版本相同的主机。"),
    },
    "pairing.engine_version:unknown": {
        "en": ("prefill's {field} is {prefill} and decode's is {decode}, and whether both hold the "
               "same engine version, as the handshake asks, is not known.",
               "Use one {field} for both roles, or pin the same engine_version without an image."),
        "zh": ("prefill 的 {field}：{prefill}，decode 的：{decode}；握手要求引擎版本相同，"
               "但无法确认。",
               "两个角色请使用同一个 {field}，或不指定镜像而固定相同的 engine_version。"),
    },
    "pairing.model_path:differ": {
        "en": ("prefill names its model {prefill} and decode {decode}, and the handshake compares "
               "these texts, not the weights.",
               "Give the model the same path on every host, for example by a link."),
        "zh": ("prefill 的模型写作 {prefill}，decode 的写作 {decode}；握手比较的是这段文本，"
               "而不是权重。",
               "请让模型在每台主机上的路径相同，例如使用链接。"),
    },
    "pairing.model_path:may_differ": {
        "en": ("prefill names its model {prefill} and decode {decode}, and whether these are the "
               "same weights is not known.",
               "Name the same path on both roles."),
        "zh": ("prefill 的模型写作 {prefill}，decode 的写作 {decode}；无法确认是否为同一份权重。",
               "请在两个角色上写同一个路径。"),
    },
    "pairing.model_path:revision": {
        "en": ("prefill loads revision {prefill} of {model} and decode revision {decode}, whose KV "
               "would be mixed silently.",
               "Pin the same --revision on both roles."),
        "zh": ("prefill 加载 {model} 的修订版本：{prefill}，decode 的：{decode}；两者的 KV "
               "会被悄悄混用。",
               "请在两个角色上固定相同的 --revision。"),
    },
    "pairing.speculative:differ": {
        "en": ("prefill speculates with {prefill} and decode with {decode}; a draft model has KV "
               "of its own, so long prompts crash or every handshake fails.",
               "Write the same --speculative-config on both roles, or none on either."),
        "zh": ("prefill 的推测解码：{prefill}，decode 的：{decode}；草稿模型有自己的 "
               "KV，长提示词会崩溃或每次握手都失败。",
               "请在两个角色上写相同的 --speculative-config，或都不写。"),
    },
    "pairing.speculative:model_free": {
        "en": ("prefill speculates with {prefill} and decode with {decode}, and whether the "
               "handshake takes a method without a draft model into account is not known.",
               "Write the same --speculative-config on both roles."),
        "zh": ("prefill 的推测解码：{prefill}，decode "
               "的：{decode}；没有草稿模型的方法是否计入握手，无法确认。",
               "请在两个角色上写相同的 --speculative-config。"),
    },
    "pairing.speculative:unreadable": {
        "en": ("prefill's speculative configuration is {prefill} and decode's is {decode}, and one "
               "of them is no JSON object.",
               "Write --speculative-config as one JSON object on both roles."),
        "zh": ("prefill 的推测解码配置：{prefill}，decode 的：{decode}；其中有一个不是 JSON 对象。",
               "请在两个角色上将 --speculative-config 写成一个 JSON 对象。"),
    },
    "pairing.speculative:tokens": {
        "en": ("decode drafts {decode} tokens and prefill {prefill}, but this mode's engine wants "
               "{wanted} on prefill.",
               "Set num_speculative_tokens to {wanted} on prefill."),
        "zh": ("decode 每次草拟 {decode} 个 token，prefill：{prefill}；该模式的引擎要求 prefill 为 "
               "{wanted}。",
               "请将 prefill 的 num_speculative_tokens 设为 {wanted}。"),
    },
    "pairing.connector:unreadable": {
        "en": ("{role}'s KV connector cannot be read ({reason}), so the engine ends at its start.",
               "Write it as one JSON object, or leave it to the mode."),
        "zh": ("读不懂 {role} 的 KV 连接器（{reason}），引擎会在启动时退出。",
               "请写成一个 JSON 对象，或交给模式生成。"),
    },
    "pairing.connector:role": {
        "en": ("{role}'s KV connector is set to {found}, but a {role} member must be {wanted}.",
               "Set kv_role to the first of these."),
        "zh": ("{role} 的 KV 连接器的 kv_role 是 {found}，而该角色应为 {wanted}。",
               "请将 kv_role 改为其中第一个。"),
    },
    "pairing.connector:kinds": {
        "en": ("prefill sends KV with {prefill} and decode expects {decode}, which cannot meet.",
               "Use one connector on both roles, or leave it to the mode."),
        "zh": ("prefill 使用连接器 {prefill}，decode 使用 {decode}，两者无法对接。",
               "两个角色请使用同一种连接器，或交给模式生成。"),
    },
    "pairing.connector:extra": {
        "en": ("{key} is {prefill} in prefill's connector and {decode} in decode's, so every "
               "handshake fails.",
               "Set {key} alike on both roles."),
        "zh": ("连接器参数 {key} 在 prefill 上为 {prefill}，在 decode 上为 {decode}，"
               "每次握手都会失败。",
               "请在两个角色上将 {key} 设为一致。"),
    },
    "pairing.connector:sizes": {
        "en": ("{role}'s KV connector says that {other} has a tensor parallel size of {told}, but "
               "it has {real}.",
               "Correct tp_size in the connector, or leave the connector to the mode."),
        "zh": ("{role} 的 KV 连接器写明 {other} 的张量并行大小为 {told}，实际为 {real}。",
               "请改正连接器中的 tp_size，或将连接器交给模式生成。"),
    },
    "pairing.connector:unknown": {
        "en": ("prefill's KV connector is {prefill} and decode's is {decode}, and one of them is a "
               "class of your own that nothing is known of.",
               "Check with a canary that both understand each other."),
        "zh": ("prefill 的 KV 连接器：{prefill}，decode 的：{decode}；其中有一个是自定义类，"
               "无从得知。",
               "请用探测请求验证两者能够互通。"),
    },
    "pairing.model_digest:config": {
        "en": ("{model} has another config.json on host {host} (digest {digest}) than on host "
               "{other_host} ({other_digest}), so KV of one would mislead the other.",
               "Copy one model to both hosts, or select hosts that have the same."),
        "zh": ("{model} 在主机 {host} 上的 config.json（摘要 {digest}）与主机 {other_host} "
               "上的（{other_digest}）不同，一侧的 KV 会误导另一侧。",
               "请将同一份模型复制到两台主机，或选择模型相同的主机。"),
    },
    "pairing.model_digest:weights": {
        "en": ("{model} has other weights on host {host} (digest {digest}) than on host "
               "{other_host} ({other_digest}), so answers would be wrong without an error.",
               "Copy one model to both hosts, or select hosts that have the same."),
        "zh": ("{model} 在主机 {host} 上的权重（摘要 {digest}）与主机 {other_host} "
               "上的（{other_digest}）不同，会得到没有报错的错误答案。",
               "请将同一份模型复制到两台主机，或选择模型相同的主机。"),
    },
}  # fmt: skip
