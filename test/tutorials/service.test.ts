import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createClient } from 'rivulet'
import { ofType } from 'rivulet/operators'
import { filter, firstValueFrom, mergeMap } from 'rxjs'
import { expect, it, onTestFinished } from 'vitest'
import { ROOT } from '../package/build.ts'
import { sharedPackage } from '../package/installed.ts'
import { freePort, save, stepsOf, Terminal } from './tutorial.ts'

// A dozen processes, one after another.
const TIMEOUT = 600_000

/** Resolves once a monitor of the service has a finding with this text. */
function isFound(baseUrl: string, text: string): Promise<unknown> {
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
    const parent = await mkdtemp(join(tmpdir(), 'rivulet-tutorial-'))
    onTestFinished(() => rm(parent, { recursive: true, maxRetries: 5 }))
    const { folder: installed } = await sharedPackage()
    await using first = new Terminal(parent, installed)
    await using second = new Terminal(parent, installed)
    const terminals = [first, second]
    // Other programs may listen on the port of the page.
    const port = await freePort()
    const steps = stepsOf(join(ROOT, 'docs/tutorials/service.md'))

    let terminal = first
    for (const step of steps) {
      const text = step.text.replaceAll('8123', port)
      if (step.kind === 'file') await save(join(parent, 'harbour'), step.file, text)
      if (step.kind === 'output') await terminal.shows(text)
      if (step.kind === 'commands') {
        terminal = terminals[step.terminal - 1] ?? first
        // The service runs until the end.
        if (text.includes('rivulet serve')) terminal.start(text)
        else await terminal.type(text)
      }
      // It happens while the program is down.
      if (step.kind === 'file' && step.file === 'docs/tuesday.md')
        await isFound(`http://127.0.0.1:${port}`, 'Tuesday')
    }

    expect(steps.filter(({ kind }) => kind === 'output').length).toBeGreaterThanOrEqual(6)
  },
  TIMEOUT,
)
