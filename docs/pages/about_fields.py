"""What each field of a document is for, by model; roles have those of the deployment that they
may override."""

from __future__ import annotations

ABOUT: dict[str, dict[str, str]] = {
    "Metadata": {
        "name": "Names the group: up to 40 lower-case letters, digits and dashes. Never changed.",
        "labels": "Words of your own, to find it by: `{team: search}`.",
    },
    "Overridable": {
        "engine": "Which engine runs. A role has the deployment's, except under mode `custom`.",
        "engine_version": "A version to run. Null is what the host or the image has.",
        "image": "Image on hosts that run containers. Null is the engine's public one for the "
        "version. Not together with `engine_version`.",
        "executable": "Program, or a venv whose `bin` is used, on hosts that run processes.",
        "run_command": "Command in place of the engine's own, one item an argument. `custom` needs "
        "it.",
        "parameters": "Arguments of the engine, in any spelling it takes; a pasted line too.",
        "env": "Variables of the engine's environment. Never of the platform's own.",
        "accelerators": "GPUs or NPUs of one replica.",
        "hosts": "Where members may run: [names, labels](#hosts-of-the-deployment-or-a-role). Null "
        "is every host.",
        "placement": "A fixed place for each replica: [host, accelerators](#an-item-of-placement).",
        "extended_kv_cache": "KV kept beyond the engine's own: "
        "[kind](#extended_kv_cache-of-the-deployment-or-a-role).",
    },
    "Spec": {
        "model": "A path that exists on the hosts, or a hub id.",
        "served_model_name": "What clients ask for. Null is the deployment's name.",
        "engine": "Which engine runs.",
        "disaggregation": "Prefill and decode apart: [the mode](#specdisaggregation). Null is "
        "plain replicas of one engine.",
        "roles": "`prefill`, `decode` and `router`, each with what it does not inherit.",
        "replicas": "How many plain replicas; with disaggregation each role has its own count.",
        "scaling_schedule": "[Counts by the clock](#an-item-of-specscaling_schedule), without "
        "disaggregation only.",
        "paused": "Stops every member and keeps the document.",
        "hosts": "Where members may run. Null is every host of the inventory.",
    },
    "Disaggregation": {
        "mode": "A [mode](modes.md): an engine, a KV connector and a router that fit together.",
        "kv_load_failure_policy": "What decode does with a request whose KV did not arrive.",
        "connector_extra": "Keys merged into the rendered connector's settings, by role.",
        "allow": "Ids of [rules](rules.md) let through on purpose; shown as unverified.",
        "canary": "Whether each pair is tried now and then with one short request; false: only "
        "when somebody asks for it.",
    },
    "ConnectorExtra": {
        "prefill": "For the prefill side: `{kv_buffer_device: cpu}`.",
        "decode": "For the decode side.",
    },
    "MemberRole": {
        "replicas": "How many members. Prefill to decode is the group's ratio.",
    },
    "RouterRole": {
        "image": "Image of the router on a container host; the mode's by default.",
        "executable": "The router's program, or a venv that holds it.",
        "run_command": "A router of your own; its membership is then yours as well (`manual`).",
        "parameters": "Changes of the mode's adjustable flags. Peers and ports are the platform's.",
        "env": "Variables of the router's environment.",
        "hosts": "Where the router may run; a host without accelerators will do.",
        "placement": "Its fixed place.",
        "port": "Pins the endpoint's port. Null is one of the host's range, kept over restarts.",
    },
    "HostSelector": {
        "names": "Hosts by name.",
        "labels": "Hosts that have all of these labels. With `names` both must hold.",
    },
    "Pin": {
        "host": "The host of this replica.",
        "accelerators": "Its accelerators, by index. Null leaves the choice to the platform.",
    },
    "KvCache": {
        "kind": "None, in the engine's process, or a cache service.",
        "service": "Name of the service, exactly where the kind is `service`.",
        "ram_size_gib": "Host memory of a member for it.",
        "ram_ratio": "Host memory as a multiple of the accelerators' memory.",
        "chunk_size": "Tokens of one chunk.",
    },
    "Schedule": {
        "cron": "When, as five cron fields.",
        "replicas": "How many from then on.",
    },
    "CacheSpec": {
        "provider": "Who provides it; a mode takes some of these.",
        "endpoint": "`HOST:PORT`, or `:PORT` for each member's own host.",
        "settings": "Placeholders of the provider's recipe.",
        "hosts": "Hosts whose members reach it. Null is all.",
    },
    "Host": {
        "name": "Names the host; lower-case letters, digits, dots and dashes.",
        "address": "Name, IP, or an alias of `~/.ssh/config`.",
        "port": "SSH port.",
        "user": "SSH user. Null is what the SSH configuration says, else yours.",
        "jump": "Host to hop over.",
        "identity_files": "Private keys. None: the agent's and the usual files.",
        "service_address": "What members of a group reach it by. Null is the address that SSH "
        "arrived at.",
        "runtime": "How instances run there.",
        "work_dir": "Folder of the instances; nothing else is written on the host.",
        "service_port_range": "First and last port. Null is the setting's, else 40000 to 40063.",
        "kv_transfer_ifname": "Interface of KV traffic, where the host has several.",
        "executables": "Programs by name: `{vllm: /opt/venv}`. A shell over SSH has no PATH of "
        "yours.",
        "labels": "Words to select it by.",
    },
}
