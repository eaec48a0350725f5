"""Sentences of the rules on layouts, latent and recurrent state, and the hybrid cache manager."""

from __future__ import annotations

_LAYOUT = "pairing.kv_cache_layout"
_MANAGER = "pairing.hybrid_kv_cache_manager"
_SSM = "pairing.ssm_conv_state_layout"
_EN = "prefill's KV layout is {prefill} and decode's is {decode}"
_ZH = "prefill 的 KV 缓存布局：{prefill}，decode 的：{decode}"
_SAME_EN = "Set the same VLLM_KV_CACHE_LAYOUT on both roles."
_SAME_ZH = "请在两个角色上设置相同的 VLLM_KV_CACHE_LAYOUT。"

TEXT: dict[str, dict[str, tuple[str, str]]] = {
    f"{_LAYOUT}:differ": {
        "en": (f"{_EN}, so blocks cannot be copied from one to the other.",
               "Give both roles the same --kv-cache-layout."),
        "zh": (f"{_ZH}；块无法从一侧复制到另一侧。", "两个角色请使用相同的 --kv-cache-layout。"),
    },
    f"{_LAYOUT}:one_side": {
        "en": (f"{_EN}, and the engine's own choice for the one that is not set is not known.",
               "Write the same --kv-cache-layout on both roles, or on neither."),
        "zh": (f"{_ZH}；未设置的一侧由引擎决定，无法得知。",
               "请在两个角色上写相同的 --kv-cache-layout，或都不写。"),
    },
    f"{_LAYOUT}:env_one_side": {
        "en": (f"{_EN}, and a layout that is not set, or none the engine has, is not known.",
               _SAME_EN),
        "zh": (f"{_ZH}；未设置或引擎没有的布局无从得知。", _SAME_ZH),
    },
    f"{_LAYOUT}:env_buffer": {
        "en": (f"{_EN}, and with a connector of your own or KV buffered in host memory what is "
               "sent is not known.", _SAME_EN),
        "zh": (f"{_ZH}；使用自定义连接器或在主机内存中缓冲 KV 时，"
               "无法得知实际发送的布局。", _SAME_ZH),
    },
    f"{_LAYOUT}:env_model_unknown": {
        "en": (f"{_EN}, and the model's configuration could not be read to tell whether the "
               "difference matters.",
               "Set the same layout on both roles, or make the model readable on a host."),
        "zh": (f"{_ZH}；读不到模型配置，无法判断这一差异是否有影响。",
               "请在两个角色上设置相同的布局，或让某台主机上可以读到该模型。"),
    },
    f"{_LAYOUT}:env_latent_unknown": {
        "en": (f"{_EN}, which is fine for latent KV only, and VLLM_MLA_DISABLE does not say "
               "whether that is kept.", "Set VLLM_MLA_DISABLE=0 on both roles."),
        "zh": (f"{_ZH}；只有潜在（MLA）KV 表示才允许不同，而 VLLM_MLA_DISABLE 未说明是否使用它。",
               "请在两个角色上设置 VLLM_MLA_DISABLE=0。"),
    },
    f"{_LAYOUT}:env_differ": {
        "en": (f"{_EN}, so blocks cannot be copied from one to the other.", _SAME_EN),
        "zh": (f"{_ZH}；块无法从一侧复制到另一侧。", _SAME_ZH),
    },
    f"{_LAYOUT}:env_not_permuted": {
        "en": (f"{_EN}, which decode can take only by permuting what arrives, and that is off.",
               "Set the same layout, or connector_extra.decode.enable_permute_local_kv: true."),
        "zh": (f"{_ZH}；decode 只有在接收时重新排列才能使用，而该功能未开启。",
               "请设置相同的布局，或设置 connector_extra.decode.enable_permute_local_kv: true。"),
    },
    f"{_LAYOUT}:env_permute_unknown": {
        "en": (f"{_EN}, which decode can take only by permuting what arrives, and whether that is "
               "on cannot be read.", "Set enable_permute_local_kv to true or false."),
        "zh": (f"{_ZH}；decode 只有在接收时重新排列才能使用，而读不懂该功能是否开启。",
               "请将 enable_permute_local_kv 设为 true 或 false。"),
    },
    f"{_LAYOUT}:env_recurrent": {
        "en": (f"{_EN}, and a recurrent model's state cannot be permuted on arrival.", _SAME_EN),
        "zh": (f"{_ZH}；循环模型的状态无法在接收时重新排列。", _SAME_ZH),
    },
    f"{_LAYOUT}:env_windowed": {
        "en": (f"{_EN}, and a model with windowed layers cannot be permuted while the hybrid KV "
               "cache manager runs.",
               "Set the same layout, or --disable-hybrid-kv-cache-manager on both roles."),
        "zh": (f"{_ZH}；混合 KV 缓存管理器运行时，带滑动窗口层的模型无法重新排列。",
               "请设置相同的布局，或在两个角色上写 --disable-hybrid-kv-cache-manager。"),
    },
    f"{_LAYOUT}:env_windowed_unknown": {
        "en": (f"{_EN}, and whether the hybrid KV cache manager, which would forbid it, runs is "
               "not known.",
               "Set the same layout, or --disable-hybrid-kv-cache-manager on both roles."),
        "zh": (f"{_ZH}；混合 KV 缓存管理器是否运行（运行则不允许）无法得知。",
               "请设置相同的布局，或在两个角色上写 --disable-hybrid-kv-cache-manager。"),
    },
    f"{_MANAGER}:differ": {
        "en": ("the hybrid KV cache manager is {prefill} on prefill and {decode} on decode, so "
               "their KV groups do not match.",
               "Write the same of --disable-hybrid-kv-cache-manager and "
               "--no-disable-hybrid-kv-cache-manager on both roles."),
        "zh": ("混合 KV 缓存管理器在 prefill 上为{prefill}，在 decode 上为{decode}，KV "
               "组无法对应。",
               "请在两个角色上写相同的 --disable-hybrid-kv-cache-manager 或 "
               "--no-disable-hybrid-kv-cache-manager。"),
    },
    f"{_MANAGER}:resolved": {
        "en": ("the hybrid KV cache manager's switch is {prefill} on prefill and {decode} on "
               "decode, and with this model and {variable} it ends up on for one side only.",
               "Write --disable-hybrid-kv-cache-manager on both roles, or set both alike."),
        "zh": ("混合 KV 缓存管理器的开关：prefill {prefill}，decode {decode}；结合该模型和 "
               "{variable}，最终只有一侧开启。",
               "请在两个角色上写 --disable-hybrid-kv-cache-manager，或将两侧设为一致。"),
    },
    f"{_MANAGER}:no_effect": {
        "en": ("the hybrid KV cache manager's switch is {prefill} on prefill and {decode} on "
               "decode, but {variable} turns it off.",
               "Set {variable}=1, or disable the manager on both roles."),
        "zh": ("混合 KV 缓存管理器的开关：prefill {prefill}，decode {decode}；但 {variable} "
               "会将其关闭。",
               "请设置 {variable}=1，或在两个角色上关闭该管理器。"),
    },
    f"{_MANAGER}:unknown": {
        "en": ("the hybrid KV cache manager's switch is {prefill} on prefill and {decode} on "
               "decode, and where it is not set the engine's version and features decide.",
               "Write --disable-hybrid-kv-cache-manager on both roles, or pin engine_version."),
        "zh": ("混合 KV 缓存管理器的开关：prefill {prefill}，decode "
               "{decode}；未设置的一侧取决于引擎版本和所用功能。",
               "请在两个角色上写 --disable-hybrid-kv-cache-manager，或固定 engine_version。"),
    },
    f"{_MANAGER}:model_unknown": {
        "en": ("the hybrid KV cache manager's switch is {prefill} on prefill and {decode} on "
               "decode, and the configuration of {model} could not be read to tell the rest.",
               "Write the same switch on both roles, or make the model readable on a host."),
        "zh": ("混合 KV 缓存管理器的开关：prefill {prefill}，decode {decode}；读不到 {model} "
               "的配置，无法推断其余情况。",
               "请在两个角色上写相同的开关，或让某台主机上可以读到该模型。"),
    },
    "pairing.mla:differ": {
        "en": ("VLLM_MLA_DISABLE is {prefill} on prefill and {decode} on decode, so only one side "
               "keeps this model's KV in latent form.",
               "Set VLLM_MLA_DISABLE alike on both roles."),
        "zh": ("VLLM_MLA_DISABLE 在 prefill 上为 {prefill}，在 decode 上为 "
               "{decode}：只有一侧使用该模型的潜在 KV 表示。",
               "请在两个角色上将 VLLM_MLA_DISABLE 设为一致。"),
    },
    "pairing.mla:one_side": {
        "en": ("VLLM_MLA_DISABLE is {prefill} on prefill and {decode} on decode, and what is not "
               "set, or no number, is the engine's choice.",
               "Set VLLM_MLA_DISABLE to the same number on both roles."),
        "zh": ("VLLM_MLA_DISABLE 在 prefill 上：{prefill}，在 decode "
               "上：{decode}；未设置或不是数字的一侧由引擎决定。",
               "请在两个角色上将 VLLM_MLA_DISABLE 设为同一个数字。"),
    },
    "pairing.mla:model_unknown": {
        "en": ("VLLM_MLA_DISABLE is {prefill} on prefill and {decode} on decode, and whether "
               "{model} keeps latent KV is not known.",
               "Set it alike on both roles, or make the model readable on a host."),
        "zh": ("VLLM_MLA_DISABLE 在 prefill 上：{prefill}，在 decode 上：{decode}；不知道 {model} "
               "是否使用潜在 KV 表示。",
               "请在两个角色上设为一致，或让某台主机上可以读到该模型。"),
    },
    f"{_SSM}:differ": {
        "en": ("VLLM_SSM_CONV_STATE_LAYOUT is {prefill} on prefill and {decode} on decode, but the "
               "recurrent state of {model} travels in layout DS only.",
               "Set VLLM_SSM_CONV_STATE_LAYOUT=DS on both roles."),
        "zh": ("VLLM_SSM_CONV_STATE_LAYOUT 在 prefill 上：{prefill}，在 decode 上：{decode}；"
               "{model} "
               "的循环状态只能以 DS 布局传输。",
               "请在两个角色上设置 VLLM_SSM_CONV_STATE_LAYOUT=DS。"),
    },
    f"{_SSM}:unset": {
        "en": ("{model} has recurrent layers, and VLLM_SSM_CONV_STATE_LAYOUT is {prefill} on "
               "prefill and {decode} on decode, while their state travels in layout DS only.",
               "Set VLLM_SSM_CONV_STATE_LAYOUT=DS on both roles."),
        "zh": ("{model} 含有循环层，而 VLLM_SSM_CONV_STATE_LAYOUT 在 prefill 上{prefill}，在 "
               "decode "
               "上{decode}；其状态只能以 DS 布局传输。",
               "请在两个角色上设置 VLLM_SSM_CONV_STATE_LAYOUT=DS。"),
    },
    f"{_SSM}:one_side": {
        "en": ("VLLM_SSM_CONV_STATE_LAYOUT is {prefill} on prefill and {decode} on decode, and "
               "the recurrent state of {model} travels in layout DS only.",
               "Set VLLM_SSM_CONV_STATE_LAYOUT=DS on both roles."),
        "zh": ("VLLM_SSM_CONV_STATE_LAYOUT 在 prefill 上：{prefill}，在 decode 上：{decode}；而 "
               "{model} 的循环状态只能以 DS 布局传输。",
               "请在两个角色上设置 VLLM_SSM_CONV_STATE_LAYOUT=DS。"),
    },
    f"{_SSM}:version_unknown": {
        "en": ("VLLM_SSM_CONV_STATE_LAYOUT is {prefill} on prefill and {decode} on decode, and "
               "what engines below {floor}, or of unknown version, do with {model} is not known.",
               "Set it to DS on both roles, and pin engine_version to {floor} or later."),
        "zh": ("VLLM_SSM_CONV_STATE_LAYOUT 在 prefill 上：{prefill}，在 decode 上：{decode}；低于 "
               "{floor} 或版本未知的引擎如何处理 {model} 无法得知。",
               "请在两个角色上设为 DS，并将 engine_version 固定为 {floor} 或更高。"),
    },
    f"{_SSM}:model_unknown": {
        "en": ("VLLM_SSM_CONV_STATE_LAYOUT is {prefill} on prefill and {decode} on decode, and "
               "whether {model} has recurrent layers is not known.",
               "Set it to DS on both roles, or make the model readable on a host."),
        "zh": ("VLLM_SSM_CONV_STATE_LAYOUT 在 prefill 上：{prefill}，在 decode 上：{decode}；"
               "不知道 "
               "{model} 是否含有循环层。",
               "请在两个角色上设为 DS，或让某台主机上可以读到该模型。"),
    },
}  # fmt: skip
