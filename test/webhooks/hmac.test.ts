import { execFile } from 'node:child_process'
import { createHmac } from 'node:crypto'
import { promisify } from 'node:util'
import * as fc from 'fast-check'
import { describe, expect, it, vi } from 'vitest'
import type { Hmac } from '../../src/webhooks/hmac.ts'
import { hmac as nodeHmac } from '../../src/webhooks/node-hmac.ts'
import { hmac as webHmac } from '../../src/webhooks/web-hmac.ts'

const implementations: readonly (readonly [name: string, hmac: Hmac])[] = [
  ['node:crypto', nodeHmac],
  ['WebCrypto', webHmac],
]
const texts = fc.string({ unit: 'binary' })

describe.each(implementations)('signatures by %s', (_, hmac) => {
  it('are those of RFC 4231', async () => {
    const signature = await hmac.sign('Jefe', 'what do ya want ', 'for nothing?')

    expect(Buffer.from(signature, 'base64').toString('hex')).toBe(
      '5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843',
    )
  })

  it('are those of a reference implementation, for any content', async () => {
    const secrets = fc.string({ unit: 'binary', minLength: 1, maxLength: 200 })
    await fc.assert(
      fc.asyncProperty(
        secrets,
        texts,
        fc.oneof(texts, fc.uint8Array({ maxLength: 512 })),
        async (secret, prefix, body) => {
          const expected = createHmac('sha256', secret).update(prefix).update(body).digest('base64')

          expect(await hmac.sign(secret, prefix, body)).toBe(expected)
        },
      ),
    )
  })

  it('cover only the bytes of a view, not its whole buffer', async () => {
    const view = new Uint8Array(Buffer.from('[for nothing?]')).subarray(1, -1)

    expect(await hmac.sign('Jefe', 'what do ya want ', view)).toBe(
      await hmac.sign('Jefe', 'what do ya want for nothing?', ''),
    )
  })

  it('stay correct while more secrets are used than cached', async () => {
    const secrets = Array.from({ length: 200 }, (_unused, i) => `secret ${i}`)
    const sign = (secret: string) => hmac.sign(secret, '', 'body')
    const expected = secrets.map((secret) => createHmac('sha256', secret).update('body').digest('base64'))

    expect(await Promise.all(secrets.map(sign))).toEqual(expected)
    expect(await Promise.all(secrets.map(sign))).toEqual(expected)
  })

  it('are equal when their texts are equal', async () => {
    await fc.assert(
      fc.asyncProperty(texts, texts, async (one, other) => {
        fc.pre(one.isWellFormed() && other.isWellFormed())

        expect(await hmac.equal(one, one)).toBe(true)
        expect(await hmac.equal(one, other)).toBe(one === other)
      }),
    )
  })

  it.each([
    ['a longer one', 'v1,abc'],
    ['a shorter one', 'v1,a'],
    ['an empty one', ''],
    ['one with another last character', 'v1,aB'],
    ['one that is the same modulo 256', 'v1,a\u0162'],
  ])('are not equal to %s', async (_what, other) => {
    expect(await hmac.equal('v1,ab', other)).toBe(false)
  })
})

describe('the signatures of a platform', () => {
  it.each([
    ['node', 'node-hmac.ts'],
    ['workerd', 'web-hmac.ts'],
    ['edge-light', 'web-hmac.ts'],
  ])('for %s are those of %s', async (condition, file) => {
    const conditions = ['--conditions=rivulet-source', `--conditions=${condition}`]
    const program = "process.stdout.write(import.meta.resolve('#hmac'))"
    const { stdout } = await promisify(execFile)(process.execPath, [
      ...conditions,
      '--input-type=module',
      '--eval',
      program,
    ])

    expect(stdout.split('/').at(-1)).toBe(file)
  })
})

describe('WebCrypto', () => {
  it('imports the key of a secret once', async () => {
    const importKey = vi.spyOn(crypto.subtle, 'importKey')

    await webHmac.sign('a secret of this test', '', 'one')
    await webHmac.sign('a secret of this test', '', 'two')

    expect(importKey).toHaveBeenCalledTimes(1)
    importKey.mockRestore()
  })
})
