import { createClient } from 'rivulet'
import { ofType } from 'rivulet/operators'
import { filter, firstValueFrom, mergeMap } from 'rxjs'
import { expect, it } from 'vitest'
import { follow } from './tutorial.ts'

// A dozen processes, one after another.
const TIMEOUT = 600_000

/** Resolves once a monitor of the service has a finding with this text. */
function isFound(baseUrl: string, text: string) {
  const { monitors } = createClient({ baseUrl, apiKey: 'tutorial' })
  const findings = monitors.list().pipe(
    mergeMap(({ monitor_id }) => monitors.follow(monitor_id, { pollInterval: 200 })),
    ofType('monitor.event_stream'),
  )
  return firstValueFrom(findings.pipe(filter(({ data }) => String(data.output.content).includes(text))))
}

it(
  'the tutorial of a service works as it is written: nothing is lost, and nothing is written twice',
  async () => {
    const outputs = await follow({
      page: 'service.md',
      folder: 'harbour',
      port: '8123',
      // It happens while the program is down.
      saved: async (file, port) => {
        if (file === 'docs/tuesday.md') await isFound(`http://127.0.0.1:${port}`, 'Tuesday')
      },
    })

    expect(outputs).toBeGreaterThanOrEqual(6)
  },
  TIMEOUT,
)
