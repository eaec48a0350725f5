"""Sentences of the rules on structure, mode, router and extended cache."""

from __future__ import annotations

TEXT: dict[str, dict[str, tuple[str, str]]] = {
    "structure.roles:": {
        "en": ("roles are given ({roles}), but disaggregation is {disaggregation}.",
               "Set spec.disaggregation.mode, or remove spec.roles."),
        "zh": ("写了角色（{roles}），但 disaggregation {disaggregation}。",
               "请设置 spec.disaggregation.mode，或删除 spec.roles。"),
    },
    "structure.replicas:": {
        "en": ("replicas is {replicas}, but a disaggregated deployment ({mode}) counts by role.",
               "Set spec.roles.prefill.replicas and spec.roles.decode.replicas; to switch the "
               "group off set spec.paused."),
        "zh": ("replicas 是 {replicas}，但分离部署（{mode}）按角色设置副本数。",
               "请设置 spec.roles.prefill.replicas 和 spec.roles.decode.replicas；"
               "要停用整个组请设置 spec.paused。"),
    },
    "structure.schedule:": {
        "en": ("{schedules} schedules are set beside mode {mode}, but a schedule would write one "
               "count where two roles have their own.",
               "Remove the schedule, or disaggregation."),
        "zh": ("在模式 {mode} 之外还设置了 {schedules} "
               "条定时伸缩，而它只会写一个副本数，两个角色却各有自己的副本数。",
               "请删除定时伸缩，或不使用分离部署。"),
    },
    "structure.run_command:engine": {
        "en": ("{role} runs the custom engine, which has no command of its own, and run_command "
               "is {run_command}.",
               "Set spec.run_command to the argv to start, one token a list item."),
        "zh": ("{role} 运行 custom 引擎，它没有自带命令，而 run_command {run_command}。",
               "请在 spec.run_command 中写启动命令，每个列表项一个参数。"),
    },
    "structure.run_command:router": {
        "en": ("mode {mode} brings no router, and the router's run_command is {run_command}.",
               "Set spec.run_command, which the router inherits, or "
               "spec.roles.router.run_command."),
        "zh": ("模式 {mode} 不带 router，而 router 的 run_command {run_command}。",
               "请设置 spec.run_command（router 会继承），或 spec.roles.router.run_command。"),
    },
    "structure.placement:uneven": {
        "en": ("this {role} member gets {width} accelerators and another one {widest}: the members "
               "of a role are launched alike.",
               "List {widest} accelerators here, or as many everywhere."),
        "zh": ("这个 {role} 成员分到 {width} 个加速器，另一个分到 {widest} "
               "个：同一角色的成员启动方式相同。",
               "请在这里列出 {widest} 个加速器，或各处列出同样多。"),
    },
    "structure.placement:twice": {
        "en": ("accelerator {accelerator} of {host} is given to this {role} member and once more: "
               "to {other_role} by {other}.",
               "Name each accelerator once, and give each role a placement of its own."),
        "zh": ("主机 {host} 的加速器 {accelerator} 分给了这个 {role} 成员，又由 {other} 分给了 "
               "{other_role}。",
               "每个加速器只写一次，并让每个角色有自己的 placement。"),
    },
    "structure.scale_role:router": {
        "en": ("{role} has exactly one replica; the roles that scale are {known}.",
               "Name one of {known}."),
        "zh": ("{role} 只有一个副本；可以伸缩的角色是 {known}。", "请写其中之一：{known}。"),
    },
    "structure.scale_role:unknown": {
        "en": ("{role} is no role of this group; the roles that scale are {known}.",
               "Name one of {known}."),
        "zh": ("这个组没有角色 {role}；可以伸缩的角色是 {known}。", "请写其中之一：{known}。"),
    },
    "structure.scale_count:": {
        "en": ("{count} is no count for {role}: it is from 1 to {most}.",
               "To switch the whole group off, pause it."),
        "zh": ("{count} 不能作为 {role} 的副本数：范围是 1 到 {most}。",
               "要停用整个组，请暂停它。"),
    },
    "mode.unknown:": {
        "en": ("there is no mode '{mode}'.", "Choose one of {known}."),
        "zh": ("没有模式 '{mode}'。", "请选择：{known}。"),
    },
    "mode.engine:": {
        "en": ("mode {mode} configures {engines}, but {role} runs {engine}.",
               "Use {first}, another mode, or mode custom with commands of your own."),
        "zh": ("模式 {mode} 能配置的引擎是 {engines}，但 {role} 运行 {engine}。",
               "请使用 {first}、其他模式，或在 custom 模式中自备命令。"),
    },
    "structure.lora:": {
        "en": ("{role} serves adapters ({flag}), but the router knows its members by one served "
               "name, so requests for an adapter find no member.",
               "Take {flag} out, or serve the adapters without disaggregation."),
        "zh": ("{role} 提供 LoRA 适配器（{flag}），但 router "
               "只按一个服务名识别成员，适配器请求找不到成员。",
               "请去掉 {flag}，或不使用分离部署来提供适配器。"),
    },
    "structure.reserved_flag:owned": {
        "en": ("{flag} {value} is written for {role}, but it is the platform's to set.",
               "Take it out; the name comes from served_model_name, ports from the host's range."),
        "zh": ("{role} 中写了 {flag} {value}，但它由平台设置。",
               "请去掉；名称来自 served_model_name，端口来自主机的端口范围。"),
    },
    "structure.reserved_flag:key": {
        "en": ("{flag} is written for {role}, but the router passes no key on, so it would be "
               "turned away by its own members.",
               "Take it out and guard the router's endpoint instead."),
        "zh": ("{role} 中写了 {flag}，但 router 不会转发密钥，会被自己的成员拒绝。",
               "请去掉，改为保护 router 的端点。"),
    },
    "structure.reference:quoted": {
        "en": ("{reference} is a text here, so the engine would be given these very words.",
               "Take away the quotes around it."),
        "zh": ("{reference} 在这里是一段文本，引擎会得到这些文字本身。", "请去掉它外面的引号。"),
    },
    "structure.reference:elsewhere": {
        "en": ("{reference} stands where no reference is looked up; only values of env are.",
               "Name a variable under env and give it the reference there, without quotes."),
        "zh": ("{reference} 所在的位置不会查找引用；只有 env 中的值可以引用。",
               "请在 env 下写一个变量，并在那里给出引用，不加引号。"),
    },
    "structure.image_version:": {
        "en": ("the image {image} and the engine version {version} are both named, but the image "
               "already holds a version.",
               "Clear engine_version, or leave the image to the version."),
        "zh": ("同时指定了镜像 {image} 和引擎版本 {version}，而镜像已经包含版本。",
               "请清除 engine_version，或不指定镜像。"),
    },
    "structure.accelerators:": {
        "en": ("{role} runs {ranks} ranks (tensor {tensor} x pipeline {pipeline}), but a member "
               "has {accelerators} accelerators.",
               "Raise accelerators to {ranks}, or lower the sizes."),
        "zh": ("{role} 需要 {ranks} 个 rank（张量并行 {tensor} x 流水线并行 "
               "{pipeline}），而每个成员只有 {accelerators} 个加速器。",
               "请将 accelerators 提高到 {ranks}，或减小并行大小。"),
    },
    "structure.allow:never": {
        "en": ("{name} cannot be let through; the rules that can are {known}.",
               "Take it out of disaggregation.allow and mend what it names."),
        "zh": ("规则 {name} 不能放行；可以放行的有 {known}。",
               "请从 disaggregation.allow 中去掉，并解决它指出的问题。"),
    },
    "structure.allow:unknown": {
        "en": ("there is no rule {name}; the rules that can be let through are {known}.",
               "Correct the name, or take it out of disaggregation.allow."),
        "zh": ("没有名为 {name} 的规则；可以放行的有 {known}。",
               "请改正名称，或从 disaggregation.allow 中去掉。"),
    },
    "mode.kv_load_failure_policy:mode": {
        "en": ("the policy {policy} is set, but the connector of mode {mode} is never told of it.",
               "Set kv_load_failure_policy to fail, or use one of: {known}."),
        "zh": ("设置了策略 {policy}，但模式 {mode} 的连接器不会收到它。",
               "请将 kv_load_failure_policy 设为 fail，或使用：{known}。"),
    },
    "mode.kv_load_failure_policy:custom": {
        "en": ("the policy {policy} is set, but mode {mode} renders no connector to tell it to.",
               "Write kv_load_failure_policy into your own --kv-transfer-config."),
        "zh": ("设置了策略 {policy}，但模式 {mode} 不生成连接器，无法告知它。",
               "请在自己的 --kv-transfer-config 中写 kv_load_failure_policy。"),
    },
    "mode.version_range:range": {
        "en": ("{engine} {version} is outside {range}, which {what} is known to work with.",
               "It is deployed all the same and may fail at its start."),
        "zh": ("{engine} {version} 不在 {range} 之内（{what} 的已知可用范围）。",
               "仍会部署，但可能启动失败。"),
    },
    "mode.version_range:reason": {
        "en": ("{engine} {version} is outside {range}, which {what} is known to work with "
               "({reason}).",
               "It is deployed all the same and may fail at its start."),
        "zh": ("{engine} {version} 不在 {range} 之内（{what} 的已知可用范围：{reason}）。",
               "仍会部署，但可能启动失败。"),
    },
    "mode.shadowed:env": {
        "en": ("{role} sets {name} itself, so the mode's own value {theirs} does not reach the "
               "engine.",
               "Leave {name} to mode {mode}, unless this is meant."),
        "zh": ("{role} 自行设置了 {name}，模式的值 {theirs} 不会到达引擎。",
               "除非有意为之，请将 {name} 交给模式 {mode}。"),
    },
    "mode.shadowed:flag": {
        "en": ("{role} writes {name} {value} itself, which wins over the mode's own {theirs}.",
               "Leave {name} to mode {mode}, unless this is meant."),
        "zh": ("{role} 自行写了 {name} {value}，优先于模式的 {theirs}。",
               "除非有意为之，请将 {name} 交给模式 {mode}。"),
    },
    "router.owned_flag:peers": {
        "en": ("{flags} of {program} names peers, which the platform does: yours would add one "
               "that does not exist.",
               "Take it out. Adjustable here: {adjustable}."),
        "zh": ("{program} 的 {flags} 用于指定对端，由平台负责；您写的会多出一个不存在的对端。",
               "请去掉。这里可调整：{adjustable}。"),
    },
    "router.owned_flag:ports": {
        "en": ("{flags} of {program} is the platform's to set: the ports come from the host's "
               "range.",
               "Take it out; pin the endpoint with spec.roles.router.port. Adjustable here: "
               "{adjustable}."),
        "zh": ("{program} 的 {flags} 由平台设置：端口来自主机的端口范围。",
               "请去掉；固定端点请用 spec.roles.router.port。这里可调整：{adjustable}。"),
    },
    "router.tunable:options": {
        "en": ("{flag} is {value}, which the router does not have; it has {bound}.",
               "Choose one of these."),
        "zh": ("{flag} 的值是 {value}，router 没有这一选项；可选：{bound}。",
               "请从中选择一个。"),
    },
    "router.tunable:number": {
        "en": ("{flag} is {value}, which is no number.", "Write a number."),
        "zh": ("{flag} 的值 {value} 不是数字。", "请写数字。"),
    },
    "router.tunable:minimum": {
        "en": ("{flag} is {value}, below the smallest value {bound} that the router starts with.",
               "Write {bound} or more."),
        "zh": ("{flag} 的值 {value} 小于 router 能启动的最小值 {bound}。",
               "请写 {bound} 或更大的值。"),
    },
    "router.tunable:maximum": {
        "en": ("{flag} is {value}, above the largest value {bound} that the router starts with.",
               "Write {bound} or less."),
        "zh": ("{flag} 的值 {value} 大于 router 能启动的最大值 {bound}。",
               "请写 {bound} 或更小的值。"),
    },
    "router.members:members": {
        "en": ("{flag} {value} needs at least {bound} {role} members, and there are {members}, so "
               "the router ends at its start.",
               "Want {bound} or more {role} members, or choose another policy."),
        "zh": ("{flag} {value} 至少需要 {bound} 个 {role} 成员，现在是 {members} 个，router "
               "会在启动时退出。",
               "请将 {role} 的副本数设为 {bound} 或更多，或选择其他策略。"),
    },
    "router.policy:": {
        "en": ("{flag} has no effect on a router that runs with {igw}: one policy rules both "
               "sides.",
               "Set {instead}, and take {flag} out."),
        "zh": ("router 以 {igw} 运行时 {flag} 不起作用：两侧使用同一个策略。",
               "请改用 {instead}，并去掉 {flag}。"),
    },
    "router.member_key:differ": {
        "en": ("{roles} ask for different keys in {variable}, but the router sends one key to "
               "both.",
               "Set the same {variable} for both roles, or take it out and guard the router's "
               "endpoint."),
        "zh": ("{roles} 的 {variable} 是不同的密钥，但 router 向两侧发送同一个密钥。",
               "请让两个角色使用相同的 {variable}，或将其去掉，改为保护 router 的端点。"),
    },
    "router.member_key:unset": {
        "en": ("{roles} ask for the key in {variable}, but the router's {sends} is not set, so it "
               "sends none and every request is turned away.",
               "Set {sends} in the router's env to the same key, or take {variable} out."),
        "zh": ("{roles} 要求 {variable} 中的密钥，但 router 的 {sends} 未设置，"
               "它不发送密钥，所有请求都会被拒绝。",
               "请在 router 的 env 中将 {sends} 设为同一密钥，或去掉 {variable}。"),
    },
    "router.member_key:other": {
        "en": ("{roles} ask for the key in {variable}, but the router's {sends} is another one, so "
               "every request is turned away.",
               "Set {sends} in the router's env to the same key, or take {variable} out."),
        "zh": ("{roles} 要求 {variable} 中的密钥，但 router 的 {sends} 是另一个密钥，"
               "所有请求都会被拒绝。",
               "请在 router 的 env 中将 {sends} 设为同一密钥，或去掉 {variable}。"),
    },
    "cache.mode:": {
        "en": ("{role} wants the extended cache {service}, but mode {mode} composes none of that "
               "kind.",
               "Set extended_kv_cache: {{kind: none}}, or choose a mode that composes it."),
        "zh": ("{role} 需要扩展 KV 缓存 {service}，但模式 {mode} 不能组合这种缓存。",
               "请设置 extended_kv_cache: {{kind: none}}，或选择能组合它的模式。"),
    },
    "cache.mode:plain": {
        "en": ("{role} wants the extended cache {service}, but without disaggregation no connector "
               "is rendered that it could join.",
               "Set extended_kv_cache: {{kind: none}}, or write the connector in the parameters."),
        "zh": ("{role} 需要扩展 KV 缓存 {service}，但不使用分离部署时不会生成可供组合的连接器。",
               "请设置 extended_kv_cache: {{kind: none}}，或在参数中自行写明连接器。"),
    },
    "cache.role:": {
        "en": ("{role} may not use the {provider} service {service} in mode {mode}{note}.",
               "Set spec.roles.{role}.extended_kv_cache: {{kind: none}}."),
        "zh": ("在模式 {mode} 中，{role} 不能使用 {provider} 服务 {service}。",
               "请设置 spec.roles.{role}.extended_kv_cache: {{kind: none}}。"),
    },
    "cache.provider:": {
        "en": ("{role} wants the cache service {service}, but mode {mode} cannot use its provider "
               "{provider}; it takes: {known}.",
               "Attach a service of one of these providers, or set {{kind: none}}."),
        "zh": ("{role} 需要缓存服务 {service}，但模式 {mode} 不能使用其提供商 {provider}；支持："
               "{known}。",
               "请接入这些提供商的服务，或设置 {{kind: none}}。"),
    },
    "cache.service:": {
        "en": ("{role} wants the cache service {service}, which is not known here; known are: "
               "{services}.",
               "Create it first, or set extended_kv_cache: {{kind: none}}."),
        "zh": ("{role} 需要缓存服务 {service}，这里没有它；现有：{services}。",
               "请先创建，或设置 extended_kv_cache: {{kind: none}}。"),
    },
    "cache.service:unknown": {
        "en": ("{role} wants the cache service {service}, and no backend was asked whether it "
               "exists and suits the mode.",
               "Check again while a backend runs."),
        "zh": ("{role} 需要缓存服务 {service}，尚未向后端确认它是否存在、是否适合该模式。",
               "请在后端运行时再次检查。"),
    },
    "cache.shape:no_service": {
        "en": ("the extended cache is of kind {kind}, but its service is {service}.",
               "Name the service, or set kind to in_process or none."),
        "zh": ("扩展缓存的 kind 是 {kind}，但服务名{service}。",
               "请写明服务名，或将 kind 设为 in_process 或 none。"),
    },
    "cache.shape:not_a_service": {
        "en": ("the service {service} is named, but the extended cache is of kind {kind}.",
               "Set kind to service, or take the name out."),
        "zh": ("写了服务 {service}，但扩展缓存的 kind 是 {kind}。",
               "请将 kind 设为 service，或去掉服务名。"),
    },
    "cache.two_services:": {
        "en": ("prefill attaches the cache service {prefill} and decode {decode}, which share "
               "nothing.",
               "Attach one service to both, or set {{kind: none}} on one role."),
        "zh": ("prefill 接入缓存服务 {prefill}，decode 接入 {decode}，两者没有共享。",
               "请让两者接入同一个服务，或在一个角色上设置 {{kind: none}}。"),
    },
}  # fmt: skip
