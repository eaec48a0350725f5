"""Rules on what an engine was told, and the model it was given."""

from __future__ import annotations

from backend.domain.diagnosis.model import Rule
from backend.domain.words import both

ENGINE: tuple[Rule, ...] = (
    Rule(
        id="arguments.unrecognized",
        severity="fatal",
        needles=("unrecognized arguments:",),
        pattern=r"error: unrecognized arguments: (?P<flags>.{1,200})",
        cause=both(
            "This engine version does not know the arguments: {flags}",
            "该引擎版本不认识这些参数：{flags}",
        ),
        remedy=both(
            "Correct or remove them in the role's parameters; flags come and go between versions.",
            "在该角色的参数中更正或删除；不同版本的参数有增减。",
        ),
        sample="vllm: error: unrecognized arguments: --no-such-flag",
        source="vLLM 0.32, run for this project",
    ),
    Rule(
        id="arguments.invalid",
        severity="fatal",
        needles=("error: argument",),
        pattern=(
            r"error: argument (?P<flag>--?[\w/-]{1,60}(?:/-\w+)?): (?:\d+ validation errors? for "
            r"\w+\n(?P<field>[\w.]{1,60})\n *)?(?P<why>[^\n\[]{1,200})"
        ),
        span=2,
        cause=both(
            "The value of {flag} is refused ({field}): {why}",
            "{flag} 的取值被拒绝（{field}）：{why}",
        ),
        remedy=both(
            "Correct it in the role's parameters, or in the connector's extra settings.",
            "在该角色的参数或连接器附加设置中更正。",
        ),
        sample=(
            "vllm serve: error: argument --kv-transfer-config: 1 validation error for "
            "KVTransferConfig\n"
            "kv_role\n"
            "  Input should be 'kv_producer', 'kv_both' or 'kv_consumer' [type=literal_error, "
            "input_value='producer', input_type=str]"
        ),
        source="vLLM 0.32, run for this project",
    ),
    Rule(
        id="arguments.connector",
        severity="fatal",
        needles=("Unsupported connector type",),
        pattern=r"Unsupported connector type: (?P<name>\w+)",
        cause=both(
            "This engine has no KV connector named {name}.",
            "该引擎没有名为 {name} 的 KV 连接器。",
        ),
        remedy=both(
            "Take a mode whose connector this engine version has; old names such as "
            "P2pNcclConnector are gone.",
            "选择该引擎版本支持的模式；P2pNcclConnector 等旧名称已移除。",
        ),
        sample=(
            "  Value error, Unsupported connector type: NoSuchConnector [type=value_error, "
            "input_value=ArgsKwargs((), {'model_co... 'shutdown_timeout': 0}), "
            "input_type=ArgsKwargs]"
        ),
        source="vLLM 0.32, run for this project",
    ),
    Rule(
        id="arguments.max_model_len",
        severity="fatal",
        needles=("User-specified max_model_len",),
        pattern=(
            r"User-specified max_model_len \((?P<asked>\d+)\) is greater than the derived "
            r"max_model_len \(\w+=(?P<most>[\d.]+)"
        ),
        cause=both(
            "--max-model-len {asked} is more than the model's own {most}.",
            "--max-model-len {asked} 超过模型自身的 {most}。",
        ),
        remedy=both(
            "Lower it on both roles; VLLM_ALLOW_LONG_MAX_MODEL_LEN=1 lets it through at the "
            "answers' risk.",
            "在两个角色上调低；VLLM_ALLOW_LONG_MAX_MODEL_LEN=1 可放行，但可能影响回答。",
        ),
        sample=(
            "  Value error, User-specified max_model_len (8000) is greater than the derived "
            "max_model_len (max_position_embeddings=4096.0 or model_max_length=None in model's "
            "config.json). To allow overriding this maximum, set the env var "
            "VLLM_ALLOW_LONG_MAX_MODEL_LEN=1."
        ),
        source="vLLM 0.32, run for this project",
    ),
    Rule(
        id="arguments.tensor_parallel",
        severity="fatal",
        needles=("must be divisible by tensor parallel size",),
        pattern=(
            r"attention heads \((?P<heads>\d+)\) must be divisible by tensor parallel size "
            r"\((?P<size>\d+)\)"
        ),
        cause=both(
            "The model's {heads} attention heads cannot be split over {size} ranks.",
            "模型的 {heads} 个注意力头无法分配到 {size} 个 rank。",
        ),
        remedy=both(
            "Choose a tensor parallel size that divides {heads}.",
            "选择能整除 {heads} 的张量并行大小。",
        ),
        sample=(
            "  Value error, Total number of attention heads (4) must be divisible by tensor "
            "parallel size (3). [type=value_error, input_value=ArgsKwargs((), {'model_co... "
            "'shutdown_timeout': 0}), input_type=ArgsKwargs]"
        ),
        source="vLLM 0.32, run for this project",
    ),
    Rule(
        id="arguments.world_size",
        severity="fatal",
        needles=("is larger than the number of available GPUs",),
        pattern=(
            r"World size \((?P<size>\d+)\) is larger than the number of available GPUs "
            r"\((?P<there>\d+)\)"
        ),
        cause=both(
            "{size} ranks were asked for and the process sees {there} accelerators.",
            "要求 {size} 个 rank，而进程只看到 {there} 个加速器。",
        ),
        remedy=both(
            "Set accelerators per replica to tensor x pipeline parallel size, and check that "
            "the container is given them.",
            "使每副本加速器数等于张量并行×流水线并行，并确认容器分配到了它们。",
        ),
        sample=(
            "  Value error, World size (2) is larger than the number of available GPUs (1) in this "
            "node. If this is intentional and you are using:"
        ),
        source="vLLM 0.2x, public deployment notes",
    ),
    Rule(
        id="arguments.kv_layout",
        severity="fatal",
        needles=("does not satisfy every supported set",),
        pattern=r"VLLM_KV_CACHE_LAYOUT=(?P<layout>\w+) does not satisfy",
        cause=both(
            "VLLM_KV_CACHE_LAYOUT={layout} is not possible with this model and attention backend.",
            "VLLM_KV_CACHE_LAYOUT={layout} 不适用于该模型与注意力后端。",
        ),
        remedy=both(
            "Take one of the layouts the line lists, on both roles, or leave the variable out.",
            "在两个角色上改用该行列出的布局，或不设置该变量。",
        ),
        sample=(
            "ValueError: VLLM_KV_CACHE_LAYOUT=NHD does not satisfy every supported set; valid "
            "layouts: LBHNC"
        ),
        source="vLLM 0.32, v1/attention/backends/utils.py",
    ),
    Rule(
        id="arguments.ib_device",
        severity="fatal",
        needles=("Duplicate IB devices specified",),
        cause=both(
            "The list of InfiniBand devices names one twice; this version does not take a JSON "
            "mapping there.",
            "InfiniBand 设备列表有重复；该版本不接受 JSON 映射。",
        ),
        remedy=both(
            "Write --disaggregation-ib-device as a plain comma-separated list.",
            "将 --disaggregation-ib-device 写成逗号分隔的列表。",
        ),
        sample="ValueError: Duplicate IB devices specified",
        source="sgl-project/sglang#20241",
    ),
    Rule(
        id="arguments.placeholder",
        severity="warning",
        needles=("{{",),
        pattern=r"(?:=|://|': '|--\w[\w-]* )\{\{ ?(?P<name>[\w.]{1,40}) ?\}\}",
        cause=both(
            "A placeholder was not filled before the launch: {name}",
            "启动前有占位符未被替换：{name}",
        ),
        remedy=both(
            "Only the documented placeholders are filled; correct the run command or the "
            "parameters.",
            "只有文档列出的占位符会被替换；更正运行命令或参数。",
        ),
        sample="non-default args: {'host': '{{worker_ip}}', 'port': 40000}",
        source="gpustack/gpustack, log patterns of its diagnosis",
    ),
    Rule(
        id="model.missing",
        severity="fatal",
        needles=(
            "is not a local folder and is not a valid model identifier",
            "Repo id must be in the form",
            "Repo id must use alphanumeric",
            "Invalid repository ID or local directory specified",
        ),
        pattern=(
            r"(?:Repo id must [^:]{1,160}: |Invalid repository ID or local directory specified: "
            r"|^|: )'?(?P<model>[^']{1,200}?)'?(?:\. Use `repo_type`|\.$| is not a local folder|$)"
        ),
        cause=both(
            "There is no such model on this host: {model}",
            "该主机上没有此模型：{model}",
        ),
        remedy=both(
            "Correct the path, copy the model to the host, or mount it into the container.",
            "更正路径，将模型复制到该主机，或挂载到容器中。",
        ),
        sample=(
            "OSError: /models/nope is not a local folder and is not a valid model identifier "
            "listed on 'https://huggingface.co/models'"
        ),
        source="transformers, utils/hub.py",
    ),
    Rule(
        id="model.gated",
        severity="fatal",
        needles=(
            "Cannot access gated repo",
            "You are trying to access a gated repo",
            "GatedRepoError",
        ),
        cause=both(
            "The model is gated and the host has no token that may read it.",
            "该模型需要授权，主机上没有可用的令牌。",
        ),
        remedy=both(
            "Set HF_TOKEN as a secret of the deployment, or give the path of a local copy.",
            "将 HF_TOKEN 设为部署的机密变量，或使用本地副本路径。",
        ),
        sample="OSError: You are trying to access a gated repo.",
        source="sgl-project/sglang#14644",
    ),
    Rule(
        id="model.offline",
        severity="fatal",
        needles=(
            "We couldn't connect to 'https://huggingface.co'",
            "LocalEntryNotFoundError",
            "OfflineModeIsEnabled",
        ),
        cause=both(
            "The host cannot reach the hub and has no local copy of the model.",
            "该主机无法访问模型仓库，且没有本地副本。",
        ),
        remedy=both(
            "Copy the model to the host and give its path, or set HF_ENDPOINT to a mirror.",
            "将模型复制到该主机并使用其路径，或将 HF_ENDPOINT 设为镜像。",
        ),
        sample=(
            "OSError: We couldn't connect to 'https://huggingface.co' to load the files, and "
            "couldn't find them in the cached files."
        ),
        source="transformers, utils/hub.py",
    ),
    Rule(
        id="model.remote_code",
        severity="fatal",
        needles=(
            "trust_remote_code",
            "contains custom code which must be executed",
            "trust-remote-code",
        ),
        pattern=(
            r"(?:requires you to execute the (?:configuration|modeling) file|contains custom code "
            r"which must be executed|consider setting `trust_remote_code=True`)"
        ),
        cause=both(
            "The model brings code of its own that may not run without consent.",
            "该模型自带代码，未经许可不会执行。",
        ),
        remedy=both(
            "Read that code, then add --trust-remote-code to both roles.",
            "审阅该代码后，为两个角色添加 --trust-remote-code。",
        ),
        sample=(
            "ValueError: Loading microsoft/Phi-3-small-8k-instruct requires you to execute the "
            "configuration file in that repo on your local machine. Make sure you have read the "
            "code there to avoid malicious use, then set the option `trust_remote_code=True` to "
            "remove this error."
        ),
        source="vllm-project/vllm#6215",
    ),
    Rule(
        id="model.architecture",
        severity="fatal",
        needles=("are not supported for now",),
        pattern=r"Model architectures \[(?P<names>[^\]]{1,120})\] are not supported",
        cause=both(
            "This engine version does not know the model's architecture {names}.",
            "该引擎版本不支持模型架构 {names}。",
        ),
        remedy=both(
            "Take a newer engine; when the name is in the list it does support, an import "
            "failed further up.",
            "升级引擎；若该名称本在支持列表中，则是上文有导入失败。",
        ),
        sample=(
            "ValueError: Model architectures ['MiniCPM3ForCausalLM'] are not supported for now."
        ),
        source="iceflame89/vllm#12",
    ),
    Rule(
        id="model.weights",
        severity="fatal",
        needles=("Error while deserializing header",),
        pattern=r"Error while deserializing header: (?P<why>\w+)",
        cause=both(
            "A weights file is broken or not fully copied ({why}).",
            "权重文件损坏或未复制完整（{why}）。",
        ),
        remedy=both(
            "Copy the model to this host again and compare the sizes; a Git LFS pointer looks "
            "like this too.",
            "重新复制模型并比较文件大小；Git LFS 指针文件也会出现此错误。",
        ),
        sample=(
            "ERROR 02-26 05:28:06 engine.py:400] Error while deserializing header: "
            "InvalidHeaderDeserialization"
        ),
        source="vllm-project/vllm#13899",
    ),
)
"""In the order of preference: of two rules that meet one line, the earlier is told."""
