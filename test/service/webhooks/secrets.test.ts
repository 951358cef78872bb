import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, it, onTestFinished } from 'vitest'
import { createResearchService } from 'rivulet/service'
import { ManualClock } from '../../../src/service/clock.ts'
import { openDatabase } from '../../../src/service/database.ts'
import { WebhookSecrets } from '../../../src/service/webhooks/secrets.ts'

const DAY = 86_400_000

/** A data file and a clock, on which the secrets can be opened again and again. */
async function dataFile() {
  const folder = await mkdtemp(join(tmpdir(), 'secrets-'))
  onTestFinished(() => rm(folder, { recursive: true }))
  const clock = new ManualClock()
  let database = openDatabase(join(folder, 'service.db'))
  onTestFinished(() => database.close())
  return {
    clock,
    /** The secrets after a restart. */
    open(...given: string[]) {
      database.close()
      database = openDatabase(join(folder, 'service.db'))
      return new WebhookSecrets(database, clock, given)
    },
    stored: () => JSON.stringify(database.prepare('SELECT * FROM webhook_secrets').all()),
  }
}

describe('the webhook secrets of a service', () => {
  it('are those of the options before a rotation, or a random one', async () => {
    const { open, stored } = await dataFile()

    expect(open('fresh', 'stale').current()).toEqual(['fresh', 'stale'])
    expect(open().current()).toEqual([expect.stringMatching(/^whsec_[\w+/]{32}$/)])
    expect(stored()).toBe('[]')
  })

  it('are the new one and, until the overlap is over, the replaced ones', async () => {
    const { open, clock } = await dataFile()
    const secrets = open('fresh', 'stale')

    const first = secrets.rotate(DAY)
    clock.advance(DAY / 2)
    const second = secrets.rotate(DAY)

    expect(secrets.current()).toEqual([second, first, 'fresh', 'stale'])
    clock.advance(DAY / 2)
    expect(secrets.current()).toEqual([second, first])
    clock.advance(DAY / 2)
    expect(secrets.current()).toEqual([second])
    const third = secrets.rotate(0)
    expect(secrets.current()).toEqual([third])
  })

  it('are the same after a restart, with and without the option', async () => {
    const { open, clock } = await dataFile()
    const rotated = open('option').rotate(DAY)

    expect(open('option').current()).toEqual([rotated, 'option'])
    expect(open().current()).toEqual([rotated, 'option'])
    clock.advance(DAY)
    expect(open('option').current()).toEqual([rotated])
    expect(open().current()).toEqual([rotated])
  })

  it('include an option that no rotation has replaced, as the newest', async () => {
    const { open } = await dataFile()
    const rotated = open('option').rotate(0)
    const secrets = open('another', 'option')

    expect(secrets.current()).toEqual(['another', rotated])
    const next = secrets.rotate(DAY)
    expect(open('another', 'option').current()).toEqual([next, 'another', rotated])
  })

  it('are eight at most, and leave nothing but a hash when their time is over', async () => {
    const { open, clock, stored } = await dataFile()
    const secrets = open('option')
    const rotated = Array.from({ length: 10 }, () => secrets.rotate(DAY))

    expect(secrets.current()).toEqual(rotated.toReversed().slice(0, 8))
    expect(stored()).toContain('option')
    clock.advance(DAY)
    open('option')
    expect(stored()).not.toContain('option')
    expect(stored().match(/whsec_/g)).toHaveLength(1)
  })

  it('are refused by the service if there are more than can sign, and are not shown', async () => {
    const webhookSecret = Array.from({ length: 9 }, (_, index) => `secret ${index}`)
    const create = (secrets: readonly string[]) =>
      createResearchService({ sources: [], webhookSecret: secrets })

    await expect(create(webhookSecret)).rejects.toMatchObject({
      argument: 'webhookSecret',
      message: expect.not.stringContaining('secret 0'),
    })
    await using service = await create(webhookSecret.slice(1))
    expect(service.webhookSecret).toBe('secret 1')
  })

  it('are not rotated with an overlap that is not from 0 to a year', async () => {
    await using service = await createResearchService({ sources: [], webhookSecret: 'option' })

    for (const overlap of [-1, 0.5, Number.MAX_SAFE_INTEGER, Infinity, Number.NaN])
      expect(() => service.rotateWebhookSecret({ overlap })).toThrow('overlap must be an integer')
    expect(service.webhookSecret).toBe('option')
  })
  it('are not rotated by a service that is closed', async () => {
    const service = await createResearchService({ sources: [] })
    await service.close()
    expect(() => service.rotateWebhookSecret()).toThrow('the service is closed')
  })
})
