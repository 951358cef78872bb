import { createHmac } from 'node:crypto'
import * as fc from 'fast-check'
import { ArgumentError } from 'rivulet'
import { signedRequest, signWebhook, verifySignature } from 'rivulet/webhooks'
import { describe, expect, it } from 'vitest'

const SECRET = 'whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw'
// Made with `openssl dgst -sha256 -hmac … -binary | base64`, as an independent reference.
const VECTOR = {
  id: 'msg_2Lh9KRb0',
  timestamp: 1_760_000_000,
  body: '{"type":"task_run.status","data":{"run_id":"run_1","note":"naïve ✓"}}',
  signature: 'v1,JzFOTaVqLNN5sOOdD37we3eXEJfZ1dcCrCORVRvlpMU=',
}
const VECTOR_CONTENT = { id: VECTOR.id, timestamp: String(VECTOR.timestamp), body: VECTOR.body }

const ids = fc.string({
  unit: fc.integer({ min: 0x21, max: 0x7e }).map((code) => String.fromCodePoint(code)),
  minLength: 1,
  maxLength: 64,
})
const bodies = fc.uint8Array({ maxLength: 512 })
const timestamps = fc.integer({ min: 0, max: 999_999_999_999 })
const secrets = fc.string({ unit: 'binary', minLength: 1, maxLength: 64 })

function flipBit(bytes: Uint8Array, bit: number): Uint8Array {
  return bytes.map((byte, i) => (i === bit >> 3 ? byte ^ (1 << (bit & 7)) : byte))
}

/** Flips one of the seven bits of ASCII, so that the result is text again. */
function flipTextBit(text: string, at: number): string {
  const index = Math.floor(at / 7) % text.length
  const flipped = String.fromCodePoint((text.codePointAt(index) ?? 0) ^ (1 << (at % 7)))
  return text.slice(0, index) + flipped + text.slice(index + 1)
}

describe('signWebhook', () => {
  it('returns the same signature as OpenSSL', async () => {
    const { signature, ...webhook } = VECTOR

    expect(await signWebhook({ ...webhook, secrets: SECRET })).toEqual({
      'content-type': 'application/json',
      'webhook-id': VECTOR.id,
      'webhook-timestamp': '1760000000',
      'webhook-signature': signature,
    })
  })

  it('uses the UTF-8 bytes of a non-ASCII secret', async () => {
    const headers = await signWebhook({ id: 'a', timestamp: 1, body: '{}', secrets: 'clé-秘密' })

    expect(headers['webhook-signature']).toBe('v1,E34UPcSt5CLrfg3G7q9V5lMXLw+FX68X/4hOZVfQDfQ=')
  })

  it('signs with every secret, in order', async () => {
    const headers = await signWebhook({ id: 'a', timestamp: 1, body: '{}', secrets: ['new', 'old'] })
    const expected = ['new', 'old'].map(
      (secret) => `v1,${createHmac('sha256', secret).update('a.1.{}').digest('base64')}`,
    )

    expect(headers['webhook-signature']).toBe(expected.join(' '))
  })

  it('defaults to a new random id and the current time', async () => {
    const before = Math.floor(Date.now() / 1000)
    const one = await signWebhook({ body: '{}', secrets: SECRET })
    const other = await signWebhook({ body: '{}', secrets: SECRET })

    expect(one['webhook-id']).not.toBe(other['webhook-id'])
    expect(Number(one['webhook-timestamp'])).toBeGreaterThanOrEqual(before)
    expect(Number(one['webhook-timestamp'])).toBeLessThanOrEqual(Math.floor(Date.now() / 1000))
  })

  it.each([
    ['id', { id: 'a\r\nx-injected: 1' }],
    ['id', { id: '' }],
    ['id', { id: 'x'.repeat(513) }],
    ['timestamp', { timestamp: 1.5 }],
    ['timestamp', { timestamp: -1 }],
    ['secrets', { secrets: '' }],
    ['secrets', { secrets: [] }],
    ['secrets', { secrets: ['good', ''] }],
  ])('refuses an invalid %s: %j', async (argument, wrong) => {
    const sign = async () => signWebhook({ id: 'a', timestamp: 1, body: '{}', secrets: SECRET, ...wrong })

    await expect(sign()).rejects.toThrow(ArgumentError)
    await expect(sign()).rejects.toMatchObject({ argument })
  })

  it('never includes a secret in an error', async () => {
    await expect(signWebhook({ body: '{}', secrets: [SECRET, ''] })).rejects.toThrow(
      expect.objectContaining({
        message: expect.not.stringContaining(SECRET),
        value: expect.not.stringContaining(SECRET),
      }),
    )
  })
})

describe('signedRequest', () => {
  it('is a POST of the payload as JSON whose signature verifies', async () => {
    const request = await signedRequest('http://127.0.0.1/hook', { note: '✓' }, { secrets: SECRET })
    const body = new Uint8Array(await request.clone().arrayBuffer())
    const id = request.headers.get('webhook-id') ?? ''
    const timestamp = request.headers.get('webhook-timestamp') ?? ''
    const signature = request.headers.get('webhook-signature') ?? ''

    expect(request.method).toBe('POST')
    expect(request.headers.get('content-type')).toBe('application/json')
    expect(await request.json()).toEqual({ note: '✓' })
    expect(await verifySignature({ id, timestamp, body }, signature, SECRET)).toBe(true)
  })
})

describe('verifySignature', () => {
  it.each([
    ['id', { id: '' }],
    ['timestamp', { timestamp: '' }],
  ])('is false for an empty %s, which a sender may send', async (_, empty) => {
    expect(await verifySignature({ ...VECTOR_CONTENT, ...empty }, VECTOR.signature, SECRET)).toBe(false)
  })

  it('accepts the signature of OpenSSL', async () => {
    expect(await verifySignature(VECTOR_CONTENT, VECTOR.signature, SECRET)).toBe(true)
  })

  it('accepts when any entry matches any secret, in any order', async () => {
    const header = `v1,${'A'.repeat(43)}= v2,something v1a,x ${VECTOR.signature} v1,short`

    expect(await verifySignature(VECTOR_CONTENT, header, ['other', SECRET, 'another'])).toBe(true)
  })

  it.each([
    ['an empty header', ''],
    ['no version', VECTOR.signature.slice(3)],
    ['an unknown version', VECTOR.signature.replace('v1', 'v2')],
    ['a version in capitals', VECTOR.signature.replace('v1', 'V1')],
    ['no padding', VECTOR.signature.replace('=', '')],
    ['too much padding', `${VECTOR.signature}=`],
    // U and V decode to the same bytes here, since Base64 ignores two bits of the last character.
    ['another spelling of the same bytes', VECTOR.signature.replace(/U=$/, 'V=')],
    ['a line break in it', VECTOR.signature.replace('sOO', 's\nOO')],
    ['characters that are equal modulo 256', VECTOR.signature.replace('J', '\u014A')],
    ['entries joined by commas', `${VECTOR.signature},${VECTOR.signature}`],
    ['hexadecimal', `v1,${Buffer.from(VECTOR.signature.slice(3), 'base64').toString('hex')}`],
  ])('refuses %s', async (_, header) => {
    expect(await verifySignature(VECTOR_CONTENT, header, SECRET)).toBe(false)
  })

  it('refuses Base64 of the URL alphabet', async () => {
    const content = { id: 'a', timestamp: '1', body: '{}' }
    const standard = 'v1,E34UPcSt5CLrfg3G7q9V5lMXLw+FX68X/4hOZVfQDfQ='

    expect(await verifySignature(content, standard, 'clé-秘密')).toBe(true)
    expect(await verifySignature(content, standard.replace('+', '-').replace('/', '_'), 'clé-秘密')).toBe(
      false,
    )
  })

  it('checks 32 entries, and refuses a header with more', async () => {
    const filler = `v1,${'A'.repeat(43)}= `

    expect(await verifySignature(VECTOR_CONTENT, filler.repeat(31) + VECTOR.signature, SECRET)).toBe(true)
    expect(await verifySignature(VECTOR_CONTENT, filler.repeat(32) + VECTOR.signature, SECRET)).toBe(false)
    expect(
      await verifySignature(VECTOR_CONTENT, `${VECTOR.signature} ${filler.repeat(10_000)}`, SECRET),
    ).toBe(false)
  })

  it('uses a text unchanged, without decoding a part after a prefix, and bytes as the key', async () => {
    const decoded = Buffer.from(SECRET.slice('whsec_'.length), 'base64')
    const content = `${VECTOR.id}.${VECTOR.timestamp}.${VECTOR.body}`
    const signature = `v1,${createHmac('sha256', decoded).update(content).digest('base64')}`

    expect(await verifySignature(VECTOR_CONTENT, signature, SECRET)).toBe(false)
    expect(await verifySignature(VECTOR_CONTENT, signature, decoded)).toBe(true)
    expect(await verifySignature(VECTOR_CONTENT, signature, ['other', new Uint8Array(decoded)])).toBe(true)
    await expect(verifySignature(VECTOR_CONTENT, signature, new Uint8Array(0))).rejects.toThrow('secrets')
  })

  it('accepts any signed content, with any of the secrets', async () => {
    await fc.assert(
      fc.asyncProperty(
        ids,
        timestamps,
        bodies,
        fc.array(secrets, { minLength: 1, maxLength: 3 }),
        fc.nat(),
        async (id, timestamp, body, all, pick) => {
          const signedWith = all[pick % all.length] ?? ''
          const headers = await signWebhook({ id, timestamp, body, secrets: signedWith })
          const content = { id, timestamp: headers['webhook-timestamp'], body }

          expect(await verifySignature(content, headers['webhook-signature'], all)).toBe(true)
        },
      ),
    )
  })

  it('agrees with a reference implementation of HMAC', async () => {
    await fc.assert(
      fc.asyncProperty(ids, timestamps, bodies, secrets, async (id, timestamp, body, secret) => {
        const bytes = Buffer.concat([Buffer.from(`${id}.${timestamp}.`), body])
        const expected = createHmac('sha256', Buffer.from(secret)).update(bytes).digest('base64')

        const headers = await signWebhook({ id, timestamp, body, secrets: secret })

        expect(headers['webhook-signature']).toBe(`v1,${expected}`)
      }),
    )
  })

  it('refuses a change of any single bit of id, timestamp, body or signature', async () => {
    const parts = fc.constantFrom('id', 'timestamp', 'body', 'signature')
    await fc.assert(
      fc.asyncProperty(
        ids,
        timestamps,
        fc.uint8Array({ minLength: 1, maxLength: 512 }),
        parts,
        fc.nat(),
        async (id, timestamp, body, part, at) => {
          const headers = await signWebhook({ id, timestamp, body, secrets: SECRET })
          const content = { id, timestamp: headers['webhook-timestamp'], body }
          const signature = headers['webhook-signature']

          const changed = {
            ...content,
            ...(part === 'id' && { id: flipTextBit(id, at) }),
            ...(part === 'timestamp' && { timestamp: flipTextBit(content.timestamp, at) }),
            ...(part === 'body' && { body: flipBit(body, at % (body.length * 8)) }),
          }
          const presented = part === 'signature' ? flipTextBit(signature, at) : signature

          expect(await verifySignature(changed, presented, SECRET)).toBe(false)
        },
      ),
      { numRuns: 500 },
    )
  })

  it('refuses a signature by another secret', async () => {
    await fc.assert(
      fc.asyncProperty(secrets, secrets, bodies, async (mine, theirs, body) => {
        // HMAC pads a short key with zero bytes, so two that differ only in those are equal.
        fc.pre(mine.replace(/\0+$/, '') !== theirs.replace(/\0+$/, ''))
        const headers = await signWebhook({ id: 'a', timestamp: 1, body, secrets: theirs })

        expect(
          await verifySignature({ id: 'a', timestamp: '1', body }, headers['webhook-signature'], mine),
        ).toBe(false)
      }),
    )
  })
})
