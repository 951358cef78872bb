import { ArgumentError } from 'rivulet'
import { createResearchService, ManualClock, systemClock } from 'rivulet/service'
import { describe, expect, it, onTestFinished } from 'vitest'
import { Faults } from '../../src/service/faults/faults.ts'
import { named, refusalOf } from '../support/refusal.ts'
import type { UncheckedCall } from '../support/refusal.ts'

const docs = import.meta.dirname
const faults = new Faults()
const clock = new ManualClock()

const CALLS: readonly UncheckedCall[] = [
  ...[
    undefined,
    null,
    {},
    5,
    docs,
    { docs: 5 },
    { docs, sorces: [] },
    { docs, sources: 5 },
    { docs, sourceHeaders: 5 },
    { docs, refreshInterval: '5' },
    { docs, include: 5 },
    { docs, enter: 5 },
    { docs, data: 5 },
    { docs, apiKey: 5 },
    { docs, webhookSecret: 5 },
    { docs, clock: 5 },
    { docs, clock: { now: () => 0 } },
    { docs, speed: '5' },
    { docs, processor: {} },
    { docs, model: {} },
    { docs, concurrency: '5' },
    { docs, faults: 5 },
    { docs, faults: [{ kind: 'cuts' }] },
    { docs, streamDuration: '5' },
    { docs, allowPrivateAddresses: 'no' },
    { docs, allowPrivateWebhooks: 'no' },
    { docs, quotas: 5 },
    { docs, quotas: { searches: {} } },
    { docs, betaHeader: 5 },
    { docs, credit: '5' },
    { docs, onError: 5 },
  ].map((options): UncheckedCall => ['createResearchService', createResearchService, [options]]),
  ['add', faults.add, [], faults],
  ['add', faults.add, [{}], faults],
  ['add', faults.add, [{ kind: 'cut', time: 1 }], faults],
  ['add', faults.add, [{ kind: 'cut', times: '1' }], faults],
  ['ManualClock', (start: never) => new ManualClock(start), ['2026']],
  ['advance', clock.advance, [], clock],
  ['advance', clock.advance, ['5'], clock],
  ['systemClock', systemClock, ['5']],
  ['systemClock', systemClock, [{}]],
  ['systemClock', systemClock, [1, '2026']],
]

describe('the functions of the service', () => {
  it.each(named(CALLS))('refuse at the call: $name of $args', async ({ call }) => {
    expect(await refusalOf(call)).toBeInstanceOf(ArgumentError)
  })

  it.each([[5], [null], [{ ports: 1 }], [{ port: '1' }], [{ host: 5 }], [{ allowRemote: 'yes' }]])(
    'refuse to listen with %j',
    async (options) => {
      const service = await createResearchService({ docs })
      onTestFinished(() => service.close())

      expect(await refusalOf(['listen', service.listen, [options], service])).toBeInstanceOf(ArgumentError)
    },
  )

  it.each([[5], [{ overlaps: 1 }], [{ overlap: '1' }]])(
    'refuse to rotate the secret with %j',
    async (options) => {
      const service = await createResearchService({ docs })
      onTestFinished(() => service.close())

      expect(
        await refusalOf(['rotateWebhookSecret', service.rotateWebhookSecret, [options], service]),
      ).toBeInstanceOf(ArgumentError)
    },
  )
})
