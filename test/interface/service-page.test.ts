import { readFileSync } from 'node:fs'
import type { ResearchService, ResearchServiceOptions } from 'rivulet/service'
import { describe, expect, it } from 'vitest'

const page = readFileSync('docs/reference/service.md', 'utf8')

/** The names in the first column of the table below a heading. */
function namesBelow(heading: string): string[] {
  const [, text = ''] = page.split(`\n## ${heading}\n`)
  const [section = ''] = text.split(/^## /m)
  return [...section.matchAll(/^\| `(\w+)/gm)].map(([, name = '']) => name)
}

const OPTIONS = Object.keys({
  docs: true,
  sources: true,
  sourceHeaders: true,
  refreshInterval: true,
  include: true,
  enter: true,
  data: true,
  apiKey: true,
  webhookSecret: true,
  clock: true,
  speed: true,
  processor: true,
  model: true,
  concurrency: true,
  faults: true,
  streamDuration: true,
  allowPrivateAddresses: true,
  allowPrivateWebhooks: true,
  quotas: true,
  betaHeader: true,
  credit: true,
  onError: true,
} satisfies Record<keyof ResearchServiceOptions, true>)

const MEMBERS = Object.keys({
  listen: true,
  url: true,
  apiKey: true,
  webhookSecret: true,
  rotateWebhookSecret: true,
  faults: true,
  clock: true,
  corpus: true,
  sources: true,
  records: true,
  close: true,
} satisfies Record<Exclude<keyof ResearchService, symbol>, true>)

describe('docs/reference/service.md', () => {
  it('has all options of the service, in the order of their declaration', () => {
    expect(namesBelow('Options')).toEqual(OPTIONS)
  })

  it('has all members of the service', () => {
    expect(namesBelow('What it returns')).toEqual(MEMBERS)
  })
})
