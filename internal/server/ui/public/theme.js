// Sets the colors before the first paint: those that the user chose, or those of the system.
;(function () {
  var theme
  try {
    theme = localStorage.getItem('qtype.theme')
  } catch (e) {}
  if (theme !== 'dark' && theme !== 'light') theme = matchMedia('(prefers-color-scheme: dark)').matches ? 'dark' : 'light'
  document.documentElement.dataset.theme = theme
})()
