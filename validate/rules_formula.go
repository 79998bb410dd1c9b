package validate

// formulaRules are the faults of expressions; they are found while linking.
func formulaRules() []rule {
	return []rule{unreadableFormula(), conditionNotBoolean(), unknownInFormula(), unfitValue()}
}

// switchSample is a step that chooses a flow by a condition.
func switchSample(when string) sample {
	return sample{text: `
id: example
flows:
  - id: refund
    variables: [{id: order, type: int}, {id: reply, type: text}]
    inputs: [order]
    outputs: [reply]
    steps:
      - {type: PromptTemplate, id: write, template: "Order {order} is refunded.", inputs: [order], outputs: [reply]}
  - id: main
    variables: [{id: label, type: text}, {id: order, type: int}, {id: reply, type: text}]
    inputs: [label, order]
    outputs: [reply]
    steps:
      - type: Switch
        id: choose
        inputs: [order]
        cases:
          - {when: '` + when + `', flow: refund}
        outputs: [reply]
`}
}

func unreadableFormula() rule {
	return rule{code: "QT423", title: "an expression that cannot be read or worked out",
		doc: "Conditions and the values of a Transform are expressions in the language of expr-lang.org: variables, numbers, \"texts\", == and <, and, or, not, in, + and *, functions such as len(…) and lower(…). " +
			"They are checked against the types of the variables, so that no row meets what cannot be compared or added.",
		sample: switchSample(`label ⟦=│==⟧ "refund"`)}
}

func conditionNotBoolean() rule {
	return rule{code: "QT424", title: "a condition that is neither true nor false",
		doc:    "when and until decide, so their expressions give a truth value: compare something.",
		sample: switchSample(`order⟦│ > 1000⟧`)}
}

func unknownInFormula() rule {
	return rule{code: "QT425", title: "an expression names no variable",
		doc:    "The words of an expression are variables of its flow, functions, and and, or, not, in, let, true, false and nil. Texts stand in quotes.",
		sample: switchSample(`⟦lable│label⟧ == "refund"`)}
}

func unfitValue() rule {
	return rule{code: "QT426", title: "an expression's value does not fit its variable",
		doc: "A Transform sets variables, and each value is of its variable's type; an int fits a float too. string(…), int(…) and float(…) convert.",
		sample: sample{in: "price: float, pieces: int", out: "total: ⟦text│float⟧",
			steps: "- {type: Transform, id: sum, set: {total: price * pieces}}"}}
}
