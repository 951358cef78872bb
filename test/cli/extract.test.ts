import { describe, expect, it } from 'vitest'
import { answer, serve } from '../support/serve.ts'
import { folderOf, rivulet } from './command.ts'

const PAGE = '# Rivers\n\nA rivulet is a small stream.\u001B[2J\n'
const html = { 'content-type': 'text/html' }

/** A site, and the environment of a service that may fetch it. */
async function scene(...args: readonly string[]) {
  const site = await serve(({ url }, response) => {
    if (url === '/rivers') response.writeHead(200, { 'content-type': 'text/markdown' }).end(PAGE)
    else if (url === '/lakes')
      response.writeHead(200, html).end('<title>Lakes</title><p>A lake is still.</p>')
    else answer(response, {}, 404)
  })
  const docs = await folderOf({})
  const service = rivulet(['serve', '--json', '--docs', docs, ...args])
  const { service: printed } = JSON.parse(await service.stdoutLine())
  return { site, env: { RIVULET_BASE_URL: printed.url, RIVULET_API_KEY: printed.api_key } }
}

describe('rivulet extract', () => {
  it('prints excerpts, a whole page, or the response as JSON', async () => {
    const { site, env } = await scene('--allow-private-addresses')

    const [excerpts, full, json] = await Promise.all([
      rivulet(
        ['extract', `${site}/rivers`, `${site}/lakes`, '--objective', 'streams', '--query', 'still'],
        env,
      ).ended,
      rivulet(['extract', `${site}/rivers`, '--full'], env).ended,
      rivulet(['extract', `${site}/lakes`, '--json'], env).ended,
    ])

    expect(excerpts).toMatchObject({ code: 0, stderr: '' })
    expect(excerpts.stdout).toBe(
      `Rivers\n${site}/rivers\n\n# Rivers\n\nA rivulet is a small stream.\\u001b[2J\n\n` +
        `Lakes\n${site}/lakes\n\nA lake is still.\n\n`,
    )
    expect(full).toMatchObject({ code: 0, stdout: '# Rivers\n\nA rivulet is a small stream.\\u001b[2J\n' })
    expect(JSON.parse(json.stdout)).toMatchObject({ results: [{ title: 'Lakes' }], errors: [] })
  })

  it('prints what it got, and fails with the reason of each page that failed', async () => {
    const { site, env } = await scene('--allow-private-addresses')

    const { code, stdout, stderr } = await rivulet(['extract', `${site}/lakes`, `${site}/none`], env).ended

    expect(code).toBe(1)
    expect(stdout).toContain('A lake is still.')
    expect(stderr).toContain(`${site}/none: http_error 404`)
    expect(stderr).toContain('1 of 2 pages failed')
  })

  it('reaches no page of this machine unless the service allows it', async () => {
    const { site, env } = await scene()

    const { code, stdout, stderr } = await rivulet(['extract', `${site}/lakes`], env).ended

    expect({ code, stdout }).toEqual({ code: 1, stdout: '' })
    expect(stderr).toContain('blocked_address')
  })
})
