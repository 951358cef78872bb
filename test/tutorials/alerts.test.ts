import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, it, onTestFinished } from 'vitest'
import { ROOT } from '../package/build.ts'
import { sharedPackage } from '../package/installed.ts'
import { freePort, save, stepsOf, Terminal } from './tutorial.ts'

// A dozen processes, one after another.
const TIMEOUT = 600_000

/** Programs that run until Ctrl-C. */
const RUNNING = /rivulet serve|node record\.ts|rules run/

it(
  'the tutorial of alerts works as it is written: a rule is checked, tested, run over the past and for real',
  async () => {
    const parent = await mkdtemp(join(tmpdir(), 'rivulet-tutorial-'))
    onTestFinished(() => rm(parent, { recursive: true, maxRetries: 5 }))
    const { folder: installed } = await sharedPackage()
    await using first = new Terminal(parent, installed)
    await using second = new Terminal(parent, installed)
    await using third = new Terminal(parent, installed)
    await using afterCtrlC = new Terminal(parent, installed)
    const terminals = [first, second, third]
    // Other programs may listen on the port of the page.
    const port = await freePort()
    const steps = stepsOf(join(ROOT, 'docs/tutorials/alerts.md'))

    let terminal = first
    for (const step of steps) {
      const text = step.text.replaceAll('8123', port)
      if (step.kind === 'file') await save(join(parent, 'storms'), step.file, text)
      if (step.kind === 'output') await terminal.shows(text)
      if (step.kind !== 'commands') continue
      terminal = terminals[step.terminal - 1] ?? first
      if (text.includes('log read')) {
        await third[Symbol.asyncDispose]()
        terminal = afterCtrlC
        await terminal.type('cd storms')
      }
      if (RUNNING.test(text)) terminal.start(text)
      else await terminal.type(text)
    }

    expect(steps.filter(({ kind }) => kind === 'output').length).toBeGreaterThanOrEqual(11)
  },
  TIMEOUT,
)
