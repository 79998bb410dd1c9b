qtype run app.qtype.yaml -f add -I in.jsonl -o out.jsonl
