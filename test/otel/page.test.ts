import { globSync, readFileSync } from 'node:fs'
import { createNoopMeter } from '@opentelemetry/api'
import { createClient } from 'rivulet'
import { createGateway } from 'rivulet/gateway'
import { memoryStore, openLog } from 'rivulet/log'
import { instrument } from 'rivulet/otel'
import { describe, expect, it } from 'vitest'
import { codeIn, plain, tablesOf } from '../support/markdown-table.ts'

const PAGE = 'docs/reference/observability.md'
/** Metrics and attributes. */
const NAME = /^(?:http|url|server|error|messaging|rivulet)(?:\.[a-z_]+)+$/

const KINDS: Readonly<Record<string, string>> = {
  createHistogram: 'histogram',
  createCounter: 'counter',
  createUpDownCounter: 'up-down counter',
  createObservableGauge: 'gauge',
}

/** The metrics of a client, a log and a gateway: name, kind and unit. */
async function instruments(): Promise<string[][]> {
  const created: string[][] = []
  const meter = new Proxy(createNoopMeter(), {
    get: (noop, method, receiver) => {
      const create: unknown = Reflect.get(noop, method, receiver)
      const kind = KINDS[String(method)]
      if (kind === undefined || typeof create !== 'function') return create
      return (name: string, options: { readonly unit: string }): unknown => {
        created.push([name, kind, options.unit])
        return create.call(noop, name, options)
      }
    },
  })
  await using log = await openLog(memoryStore())
  await using gateway = createGateway({ log, views: {}, tokens: { secret: crypto.randomUUID() } })
  const client = createClient({ baseUrl: 'http://127.0.0.1:1', apiKey: 'key' })
  using _ = instrument({ client, log, gateway, meter })
  return created
}

describe('docs/reference/observability.md', () => {
  it('has each metric with its kind and unit, and no other', async () => {
    const rows = tablesOf(PAGE)
      .filter(({ head }) => head[0] === 'Metric')
      .flatMap(({ head, rows: cells }) =>
        // A table without kinds is that of the gauges.
        cells.map((row) =>
          [row[0], row[head.indexOf('Kind')] ?? 'gauge', row[head.indexOf('Unit')]].map(plain),
        ),
      )

    expect(rows.toSorted()).toEqual((await instruments()).toSorted())
  })

  it('has each attribute of metrics and spans, and no other', async () => {
    const code = globSync('src/otel/*.ts').flatMap((file) =>
      readFileSync(file, 'utf8').match(/(?<=')[a-z_.]+(?=')/g),
    )
    const metrics = new Set((await instruments()).map(([name]) => name))
    const attributesOf = (names: readonly unknown[]) =>
      [...new Set(names.map(String))].filter((name) => NAME.test(name) && !metrics.has(name)).toSorted()

    const attributes = attributesOf(code)
    expect(attributesOf(codeIn(readFileSync(PAGE, 'utf8').replaceAll(/^```[^]*?^```/gm, '')))).toEqual(
      attributes,
    )
    expect(attributes).toContain('rivulet.log.position')
  })
})
