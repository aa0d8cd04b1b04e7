#!/bin/bash
# Makes an AArch64 Python that runs on x86-64 by QEMU's emulation: make_python.sh FOLDER [WORDS FOR PIP...]
#
# FOLDER/python then is a command like `python3` of such a machine, which QEMU_CPU=cortex-a72, cortex-a76 or max makes
# another processor. It needs Debian or Ubuntu, for their arm64 packages, and qemu-user. It installs nothing into the
# system: apt keeps its lists in FOLDER too. Words for pip name wheels from PyPI, which come
# with what they require.
set -euo pipefail
folder=$(mkdir -p "$1" && cd "$1" && pwd)
shift
command -v qemu-aarch64 >/dev/null || { echo "qemu-aarch64 is missing: apt install qemu-user" >&2; exit 1; }
mkdir -p "$folder"/{apt/lists/partial,apt/archives/partial,debs,root,site,home}

if [ ! -e "$folder/root/usr/bin/python3" ]; then
  touch "$folder/apt/status"
  arm64=(-qq -o Dir::State="$folder/apt" -o Dir::State::status="$folder/apt/status" -o Dir::Cache="$folder/apt"
    -o APT::Architecture=arm64 -o APT::Architectures=arm64 -o APT::Sandbox::User=)
  apt-get "${arm64[@]}" update
  # What python3 requires, but no package that only sets a system up.
  packages=$(apt-cache "${arm64[@]}" depends --recurse --no-recommends --no-suggests --no-conflicts --no-breaks \
    --no-replaces --no-enhances python3 libstdc++6 | grep '^\w' | grep -Ev '^(debconf|dpkg|tar|perl|media-types)' | sort -u)
  (cd "$folder/debs" && for name in $packages; do apt-get "${arm64[@]}" download "$name" 2>/dev/null || true; done)
  for deb in "$folder"/debs/*.deb; do dpkg-deb --extract "$deb" "$folder/root"; done
fi

# The official interpreter asks the system which cores there are, and must not see those of the host.
cores="$folder/root/sys/devices/system/cpu"
mkdir -p "$folder/root/proc" "$cores"
for core in 0 1; do
  mkdir -p "$cores/cpu$core/topology"
  echo "$core" >"$cores/cpu$core/topology/thread_siblings_list"
  echo 0-1 | tee "$cores/cpu$core/topology/core_siblings_list" >"$cores/cpu$core/topology/cluster_cpus_list"
  printf 'processor\t: %s\nFeatures\t: fp asimd\nCPU implementer\t: 0x41\nCPU architecture: 8\nCPU part\t: 0xd0c\n\n' "$core"
done >"$folder/root/proc/cpuinfo"
for name in possible present online; do echo 0-1 >"$cores/$name"; done

cat >"$folder/python" <<END
#!/bin/bash
export PYTHONPATH="$folder/site\${PYTHONPATH:+:\$PYTHONPATH}" HOME="$folder/home"
exec qemu-aarch64 -L "$folder/root" "$folder/root/usr/bin/python3" "\$@"
END
chmod +x "$folder/python"
# Programs that it starts must be emulated too.
echo "import sys; sys.executable = '$folder/python'" >"$folder/site/sitecustomize.py"

if [ $# -gt 0 ]; then
  version=$("$folder/python" -c 'import sys; print("%d.%d" % sys.version_info[:2])')
  platforms=(manylinux2014_aarch64 manylinux_2_17_aarch64 manylinux_2_27_aarch64 manylinux_2_28_aarch64)
  "${PYTHON:-python3}" -m pip install --quiet --upgrade --only-binary=:all: --python-version "$version" \
    "${platforms[@]/#/--platform=}" --target "$folder/site" "$@"
fi
