import { Webhook } from 'standardwebhooks'
import { verifySignature } from 'rivulet/webhooks'
import { createResearchService } from 'rivulet/service'
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

  it('by the secret of a service verify as the interface has them, and with a library of Standard Webhooks', async () => {
    await using service = await createResearchService({ docs: import.meta.dirname })
    const { webhookSecret } = service
    const timestamp = Math.floor(Date.now() / 1_000)
    const signature = signatures([webhookSecret], { ...signed, timestamp })
    const headers = {
      'webhook-id': signed.id,
      'webhook-timestamp': String(timestamp),
      'webhook-signature': signature,
    }

    expect(new Webhook(webhookSecret).verify(signed.body, headers)).toEqual({ a: 'ü' })
    const content = { id: signed.id, timestamp: String(timestamp), body: signed.body }
    expect(await verifySignature(content, signature, webhookSecret)).toBe(true)
    const bytes = Buffer.from(webhookSecret.replace('whsec_', ''), 'base64')
    expect(await verifySignature(content, signature, new Uint8Array(bytes))).toBe(true)
    expect(await verifySignature(content, signature, bytes.subarray(1))).toBe(false)
  })
})
