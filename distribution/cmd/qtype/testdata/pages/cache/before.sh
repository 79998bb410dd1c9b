qtype run app.qtype.yaml -i 'A good book'
