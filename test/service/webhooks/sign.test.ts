import { describe, expect, it } from 'vitest'
import { signatures } from '../../../src/service/webhooks/sign.ts'

const signed = { id: 'whk_1', timestamp: 1767225600, body: '{"a":"ü"}' }

describe('signatures', () => {
  it('is the HMAC-SHA256 of id, timestamp and body in Base64, as openssl computes it', () => {
    // printf '%s' 'whk_1.1767225600.{"a":"ü"}' | openssl dgst -sha256 -hmac 'whsec_tëst' -binary | base64
    expect(signatures(['whsec_tëst'], signed)).toBe('v1,tz752H98pZT2tH9ir8SMOKsTPL1Qg63k7SqBEV2c2II=')
  })

  it('has an entry for each secret, separated by a space', () => {
    const both = signatures(['old', 'new'], signed)

    expect(both).toBe(`${signatures(['old'], signed)} ${signatures(['new'], signed)}`)
  })
})
