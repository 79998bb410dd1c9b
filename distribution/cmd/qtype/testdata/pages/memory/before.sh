seq 8 | qtype chat app.qtype.yaml --session ada
seq 5 | qtype chat app.qtype.yaml --session c-1
