# Shared by the scripts beside it.

cd "$(dirname "$0")/.."

targets() {
    sed -n 's|^path = "fuzz_targets/\(.*\)\.rs"|\1|p' fuzz/Cargo.toml
}

# The option for the dictionary whose first line names the target, if there is one.
dictionary() {
    grep -lE "^# For:.* $1( |\$)" fuzz/dict/*.dict | sed 's/^/-dict=/'
}
