# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
#
# Prints what the user reads: progress, with the time since the start, and errors of one sentence.

readonly started_at="${EPOCHREALTIME/./}"

# seconds_since MICROSECONDS prints the seconds since a time, with one decimal.
seconds_since() {
	local tenths=$(((${EPOCHREALTIME/./} - $1) / 100000))
	printf '%d.%d' $((tenths / 10)) $((tenths % 10))
}

# say TEXT prints a line of progress to standard error. Standard output has only the result of a command.
say() {
	printf '[%6ss] %s\n' "$(seconds_since "$started_at")" "$*" >&2
}

# fail TEXT prints an error and ends the process with status 1.
fail() {
	printf 'cluster: %s\n' "$*" >&2
	exit 1
}

# run_with_heartbeat WHAT LOG CMD... runs a command that may take minutes, with its output in the file LOG. It prints a
# line of progress every 15 seconds. If the command fails, it prints the end of the log and ends the process.
run_with_heartbeat() {
	local what="$1" log="$2" began="${EPOCHREALTIME/./}" pid ticks=0 status=0
	shift 2
	"$@" >"$log" 2>&1 &
	pid=$!
	# If this process ends, the command must not continue in the background.
	# shellcheck disable=SC2064 # the process id of now is the one that is meant
	trap "kill $pid 2>/dev/null || true" EXIT
	while kill -0 "$pid" 2>/dev/null; do
		sleep 0.25
		if ((++ticks % 60 == 0)); then
			say "still $what (since $(seconds_since "$began") s)"
		fi
	done
	wait "$pid" || status=$?
	trap - EXIT
	if ((status != 0)); then
		tail -n 20 "$log" >&2
		fail "$what ended with status $status; all of its output is in $log"
	fi
}
