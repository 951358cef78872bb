import * as fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { checkGrant } from '../../../src/gateway/access/checked-grant.ts'
import { Tokens } from '../../../src/gateway/access/tokens.ts'
import { GRANT, SECRET } from './scene.ts'

const tokens = new Tokens({ secret: SECRET })
const now = 1_700_000_000_000

function sign(): Promise<string> {
  const grant = checkGrant(GRANT)
  return tokens.sign({ kind: 'token', grant, id: 'id', issued: now, expires: now + 60_000 })
}

const header = fc.oneof(
  fc.json(),
  fc
    .record({
      alg: fc.constantFrom('none', 'None', 'HS256', 'RS256', 'ES256', '', null),
      typ: fc.string(),
      crit: fc.array(fc.string()),
      b64: fc.boolean(),
    })
    .map((each) => JSON.stringify(each)),
)
const base64 = (text: string) => Buffer.from(text).toString('base64url')

describe('a text that is no token of this gateway', () => {
  it('is refused without an error, whatever it is', async () => {
    const signature = (await sign()).split('.')[2] ?? ''
    const text = fc.oneof(
      fc.string(),
      fc.string({ unit: 'binary' }),
      fc
        .tuple(header, fc.json(), fc.constantFrom('', signature, 'AAAA'))
        .map(([head, claims, end]) => `${base64(head)}.${base64(claims)}.${end}`),
      fc.array(fc.base64String(), { maxLength: 5 }).map((parts) => parts.join('.')),
    )
    await fc.assert(
      fc.asyncProperty(text, async (given) => {
        expect(await tokens.verify(given, 'token', now)).toBe('unauthenticated')
        expect(await tokens.idOf(given)).toBeUndefined()
      }),
      { numRuns: 500 },
    )
  })

  it('is a token with one character changed, but for the bits that its signature does not use', async () => {
    const token = await sign()
    // The last character of 32 bytes in Base64 has two bits that do not count.
    const at = fc.nat({ max: token.length - 2 })
    await fc.assert(
      fc.asyncProperty(
        at,
        fc.constantFrom('A', 'z', '0', '-', '_', '.', '=', ' ', '\n', 'é'),
        async (place, character) => {
          const changed = token.slice(0, place) + character + token.slice(place + 1)
          fc.pre(changed !== token)

          expect(await tokens.verify(changed, 'token', now)).toBe('unauthenticated')
        },
      ),
      { numRuns: 500 },
    )
    expect(await tokens.verify(token, 'token', now)).toMatchObject({
      id: 'id',
      issued: now,
      expires: now + 60_000,
    })
  })
})
