import { createContext, runInContext } from 'node:vm'
import { resolve } from 'node:path'
import { rolldown } from 'rolldown'
import { beforeAll, describe, expect, it } from 'vitest'

/** The globals of every runtime with `Request` and `Response`: without `process`, `Buffer` and `setImmediate`. */
const WEB_GLOBALS = {
  AbortController,
  AbortSignal,
  Headers,
  ReadableStream,
  Request,
  Response,
  TextDecoder,
  TextEncoder,
  URL,
  atob,
  btoa,
  clearTimeout,
  crypto,
  setTimeout,
}

const PROGRAM = `
  import * as webhooks from 'rivulet/webhooks'
  const secrets = ['new', 'old']
  const receiver = webhooks.createWebhookReceiver({ secrets })
  const ids = []
  const first = new Promise((resolve) => receiver.deliveries.subscribe(({ id }) => resolve(ids.push(id))))
  const send = async (options) =>
    (await receiver.handle(await webhooks.signedRequest('http://x.example/', { n: 1 }, options))).status
  globalThis.outcome = (async () => {
    const statuses = [
      await send({ secrets: 'old', id: 'a' }),
      await send({ secrets: 'old', id: 'a' }),
      await send({ secrets: 'forged' }),
      await send({ secrets, timestamp: 1 }),
    ]
    await first
    let posted
    const fetch = async (url, init) => {
      posted = { url, ...init }
      return new Response('secret of the sink', { status: 503, headers: { 'retry-after': '7' } })
    }
    const sink = webhooks.httpSink({ url: 'https://user:pässword@x.example/', secrets: 'secret of the sink', fetch })
    const { message, retryAfter } = await sink({ source: '/s', id: '1', type: 't', data: 1 }).catch((error) => error)
    const { headers, body } = posted
    const content = { id: headers['webhook-id'], timestamp: headers['webhook-timestamp'], body }
    const isSigned = await webhooks.verifySignature(content, headers['webhook-signature'], 'secret of the sink')
    const sent = { isSigned, message, retryAfter, authorization: headers.authorization }
    return { statuses, ids, listener: typeof webhooks.nodeListener(receiver), sent }
  })()
`

describe('rivulet/webhooks without Node', () => {
  let code = ''
  let imports: readonly string[] = []
  beforeAll(async () => {
    const bundle = await rolldown({
      input: 'program.js',
      cwd: resolve(import.meta.dirname, '../..'),
      platform: 'browser',
      resolve: { conditionNames: ['rivulet-source', 'browser', 'import', 'default'] },
      plugins: [
        {
          name: 'program',
          resolveId: (id) => (id === 'program.js' ? resolve(import.meta.dirname, id) : undefined),
          load: (id) => (id.endsWith('program.js') ? PROGRAM : undefined),
        },
      ],
      external: [/^node:/],
      logLevel: 'silent',
    })
    const { output } = await bundle.generate({ format: 'iife' })
    code = output[0].code
    imports = output[0].imports
  })

  it('imports no Node module', () => {
    expect(imports).toEqual([])
  })

  it('receives signed webhooks once, refuses others, and posts events', async () => {
    const context = createContext({ ...WEB_GLOBALS })

    runInContext(code, context)

    expect(await context['outcome']).toEqual({
      statuses: [204, 204, 401, 403],
      ids: ['a'],
      listener: 'function',
      sent: {
        isSigned: true,
        message: 'https://x.example answered with 503: (not shown)',
        retryAfter: 7_000,
        authorization: `Basic ${Buffer.from('user:pässword').toString('base64')}`,
      },
    })
  })
})
