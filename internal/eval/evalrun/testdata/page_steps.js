// Uses the page as a reader does, and writes what it shows in place of its body.
(async () => {
  const seen = []
  const until = async test => { while (!test()) await new Promise(resolve => setTimeout(resolve)) }
  const count = () => fields.count.value
  const set = async (name, value) => {
    fields[name].value = value
    fields[name].dispatchEvent(new Event('input', { bubbles: true }))
    await until(() => / of /.test(count()) && !/searching/.test(count()))
    return count()
  }
  await until(complete)
  seen.push(count(), (document.querySelectorAll('.body .line').length > 60 ? 'all' : 'few') + ' in the page')
  seen.push('other verdicts: ' + shown.filter(i => bit(data.flags[i], 1)).length)
  seen.push('not passed: ' + await set('show', 'rows not passed'))
  await set('show', 'all rows')
  const found = await set('text', 'ORDER 987?')
  seen.push('text: ' + found + ', ' + document.querySelector('[role=rowheader]').textContent)
  await set('text', 'order 1?')
  document.querySelector('.answer').click()
  dialog.querySelector('[name=compare]').value = 'before'
  dialog.querySelector('[name=compare]').dispatchEvent(new Event('change', { bubbles: true }))
  const section = dialog.querySelector('section')
  seen.push('diff: ' + [...section.querySelectorAll('del, ins')].map(e => (e.tagName === 'DEL' ? '-' : '+') + e.textContent.replace(/\W/g, '')).sort((a, b) => a.charCodeAt(0) < b.charCodeAt(0) ? 1 : -1).join(' '))
  seen.push('prompt: ' + section.querySelector('ol pre').textContent.slice(0, 25))
  dialog.close()
  await set('text', 'order 987?')
  document.querySelector('.answer').click()
  const form = dialog.querySelector('form')
  form.elements.label.value = 'fail'
  form.elements.note.value = 'too long'
  form.requestSubmit()
  await until(() => notes.size)
  dialog.close()
  await set('text', '')
  seen.push('annotated: ' + await set('show', 'rows with annotations'))
  const { row, variant, label, note } = [...notes.values()][0]
  seen.push('saved: ' + JSON.stringify({ row, variant, label, note }))
  document.body.textContent = seen.join('; ') + '|'
})()
