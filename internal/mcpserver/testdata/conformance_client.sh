# conformance_client.sh PROGRAM URL is the client of a scenario of the conformance suite of MCP.
export MCP_URL=$2
cd "$(dirname "$0")" || exit
case $MCP_CONFORMANCE_SCENARIO in
auth/*)
  XDG_STATE_HOME=$(mktemp -d)
  export XDG_STATE_HOME
  trap 'rm -r "$XDG_STATE_HOME"' EXIT
  # The person opens the address, and the authorization server sends the browser back at once.
  "$1" login conformance_login.qtype.yaml 2>&1 | while read -r word; do
    case $word in http*) curl -sLo /dev/null "$word" ;; esac
  done
  "$1" run conformance_login.qtype.yaml
  ;;
elicitation* | sep-2322*)
  answer='{"confirmed":true}'
  [ "$MCP_CONFORMANCE_SCENARIO" = sep-2322-client-request-state ] || answer={} # the defaults
  ELICITATION=true "$1" run conformance_client.qtype.yaml -i "$MCP_CONFORMANCE_SCENARIO" --client-tool server="echo $answer"
  ;;
*) "$1" run conformance_client.qtype.yaml -i "$MCP_CONFORMANCE_SCENARIO" ;;
esac
