#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The step of action.yml that checks. ARGUMENTS, STRICT and FAIL are the action's
# inputs; RUNNER_TEMP, GITHUB_OUTPUT and GITHUB_STEP_SUMMARY are the runner's.
set -euo pipefail

read -r -a arguments <<<"${ARGUMENTS//$'\n'/ }"
if [ "$STRICT" = true ]; then
	arguments+=(--strict)
fi
report=$(mktemp "$RUNNER_TEMP/check-XXXXXX.sarif")
code=0
"$RUNNER_TEMP/kubectl-gc/bin/kubectl-gc" check "${arguments[@]}" -o sarif >"$report" || code=$?
echo "exit-code=$code" >>"$GITHUB_OUTPUT"
if ! [ -s "$report" ]; then # an error before there was an answer
	exit "$code"
fi
findings=$(jq '[.runs[].results[]] | length' "$report")
{
	echo "sarif=$report"
	echo "findings=$findings"
} >>"$GITHUB_OUTPUT"
{
	echo "### Owner references: $findings wrong"
	# A name may have line breaks in it, after which GitHub looks for commands.
	jq -r '.runs[].results[] | "- \(.level): \(.message.text)" | gsub("\\s+"; " ")' "$report"
} | tee -a "$GITHUB_STEP_SUMMARY"
if [ "$code" = 2 ] && [ "$FAIL" != true ]; then
	exit 0
fi
exit "$code"
