import { expect, it } from 'vitest'
import { follow } from './tutorial.ts'

// A dozen processes, one after another.
const TIMEOUT = 600_000

it(
  'the tutorial of alerts works as it is written: a rule is checked, tested, run over the past and for real',
  async () => {
    const outputs = await follow({ page: 'alerts.md', folder: 'storms', port: '8123' })

    expect(outputs).toBeGreaterThanOrEqual(11)
  },
  TIMEOUT,
)
