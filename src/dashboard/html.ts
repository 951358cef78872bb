/** The page: its script shows everything, and is awaited before the first frame, which would otherwise have the colours of the system. */
export function pageHtml(script: string, style: string): string {
  return html(
    `<link rel="stylesheet" href="/assets/${style}">
<script type="module" blocking="render" src="/assets/${script}"></script>`,
    `<div id="root"></div>
<noscript>The dashboard needs JavaScript.</noscript>`,
  )
}

/** The page for a browser that has no key. */
export const NO_KEY_HTML = html(
  '',
  `<h1>Rivulet</h1>
<p>Open the address that the command has printed: it ends with a key.</p>`,
)

/** Leads to the page. A redirect is not enough: a browser that came from another site does not send a new strict cookie with it. */
export const WELCOME_HTML = html('', '<p><a href="/">Open the dashboard</a></p>')

function html(head: string, body: string): string {
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>Rivulet</title>
<link rel="icon" href="/assets/icon.svg">
${head}
</head>
<body>
${body}
</body>
</html>
`
}
