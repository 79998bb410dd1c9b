'use strict'
// Hides the rows that have not failed, or whose text lacks what was typed.
const form = document.querySelector('form')
const rows = [...document.querySelectorAll('.rows tbody tr')]
function filter () {
  const words = form.elements.text.value.toLowerCase().split(/\s+/)
  let shown = 0
  for (const row of rows) {
    const text = row.textContent.toLowerCase()
    row.hidden = (form.elements.failed.checked && !row.dataset.failed) || !words.every(word => text.includes(word))
    if (!row.hidden) shown++
  }
  form.elements.count.value = `${shown} of ${rows.length} results`
}
form.hidden = false
form.addEventListener('input', filter)
form.addEventListener('submit', event => event.preventDefault())
filter() // a browser keeps what was typed
