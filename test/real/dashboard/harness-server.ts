import { readFile } from 'node:fs/promises'
import { resolve } from 'node:path'
import type { RequestListener } from 'node:http'
import { rolldown } from 'rolldown'

const HARNESS = resolve(import.meta.dirname, 'harness.ts')
const STYLE = resolve(import.meta.dirname, '../../../src/dashboard/page/page.css')

/** As a dashboard's server sends it. */
const POLICY =
  "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

const HTML = `<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>Rivulet</title>
<link rel="icon" href="/icon.svg">
<link rel="stylesheet" href="/page.css">
<script type="module" src="/page.js"></script>
<div id="root"></div>
`

/** Serves the harness of the page under the policy of a dashboard. */
export async function harnessListener(): Promise<RequestListener> {
  await using build = await rolldown({
    input: HARNESS,
    platform: 'browser',
    resolve: { conditionNames: ['rivulet-source', 'browser', 'import', 'default'] },
    transform: { target: 'es2023', define: { 'process.env.NODE_ENV': '"production"' } },
  })
  const { output } = await build.generate({ format: 'es', codeSplitting: false })
  const script = output[0].code
  const style = await readFile(STYLE, 'utf8')
  return (request, response) => {
    const path = request.url?.split('?')[0]
    const [type, body] =
      path === '/page.js'
        ? ['text/javascript', script]
        : path === '/page.css'
          ? ['text/css', style]
          : ['text/html', HTML]
    response.writeHead(200, {
      'content-type': `${type}; charset=utf-8`,
      'content-security-policy': POLICY,
      'cache-control': 'no-store',
    })
    response.end(body)
  }
}
