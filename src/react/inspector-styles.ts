const CSS = `
.rivulet-inspector{position:fixed;inset:auto 1rem 1rem auto;z-index:2147483000;max-width:calc(100vw - 2rem);border:1px solid #6b7280;
border-radius:.5rem;background:#111827;color:#f3f4f6;font:12px/1.5 ui-monospace,monospace}
.rivulet-inspector summary{padding:.25rem .75rem;cursor:pointer}
.rivulet-inspector :focus-visible{outline:2px solid #93c5fd;outline-offset:2px}
.rivulet-inspector-content{max-height:50vh;overflow:auto;padding:0 .75rem .5rem}
.rivulet-inspector table{border-collapse:collapse}
.rivulet-inspector caption{text-align:left;font-weight:700;padding-top:.5rem}
.rivulet-inspector :is(th,td){padding:0 1rem 0 0;text-align:left;font-weight:400;white-space:nowrap}
.rivulet-inspector thead th{color:#d1d5db}
.rivulet-inspector td:nth-child(3){max-width:16rem;overflow:hidden;text-overflow:ellipsis}
`

/**
 * Adds the inspector's styles to the document. A constructed style sheet is allowed by a strict Content Security Policy, unlike a
 * style element. Returns a function that removes them.
 */
export function addInspectorStyles(): () => void {
  // Not in jsdom, for instance.
  if (!('adoptedStyleSheets' in document)) return () => {}
  const sheet = new CSSStyleSheet()
  sheet.replaceSync(CSS)
  document.adoptedStyleSheets = [...document.adoptedStyleSheets, sheet]
  return () => {
    document.adoptedStyleSheets = document.adoptedStyleSheets.filter((each) => each !== sheet)
  }
}
