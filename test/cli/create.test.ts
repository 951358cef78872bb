import { join } from 'node:path'
import { createResearchService } from 'rivulet/service'
import type { Processor } from 'rivulet/service'
import { describe, expect, it, onTestFinished } from 'vitest'
import { answer, openStream, serve } from '../support/serve.ts'
import { DOCUMENTS, folderOf, rivulet } from './command.ts'
import { inProcess } from './in-process.ts'

/** A service in this process, and the environment of its commands. */
async function service(processor?: Processor) {
  const docs = await folderOf(DOCUMENTS)
  const research = await createResearchService({ docs, ...(processor !== undefined && { processor }) })
  onTestFinished(() => research.close())
  return { RIVULET_BASE_URL: await research.listen(), RIVULET_API_KEY: research.apiKey }
}

const NO_SERVICE = { RIVULET_BASE_URL: 'http://127.0.0.1:1', RIVULET_API_KEY: 'key_of_the_test' }

// A part of each command is tried as a process, with its exit code and its standard input; the rest within this one.

describe('rivulet monitor', () => {
  it('creates a monitor from its options', async () => {
    const env = await service()
    const options = [
      '--frequency',
      '1d',
      '--processor',
      'core',
      '--include-domain',
      '.edu',
      '--metadata',
      'a=b=c',
    ]
    const { code, stdout } = await rivulet(
      ['monitor', 'create', '--query', 'rivers', ...options, '--json'],
      env,
    ).ended

    expect(code).toBe(0)
    expect(JSON.parse(stdout)).toMatchObject({
      type: 'event_stream',
      frequency: '1d',
      processor: 'core',
      settings: { query: 'rivers', advanced_settings: { source_policy: { include_domains: ['.edu'] } } },
      metadata: { a: 'b=c' },
    })
  })

  it('shows, triggers, cancels and lists monitors', async () => {
    const env = await service()
    const created = await inProcess(['monitor', 'create', '--query', 'rivers', '--frequency', '1d'], env)
    const [id = ''] = created.stdout.split(' ')
    const [shown, triggered, all] = await Promise.all([
      inProcess(['monitor', 'get', id], env),
      inProcess(['monitor', 'trigger', id], env),
      inProcess(['monitor', 'list', '--json'], env),
    ])
    const cancelled = await inProcess(['monitor', 'cancel', id], env)
    const active = await inProcess(['monitor', 'list', '--status', 'active'], env)

    expect(created.stdout).toBe(`${id}  active     1d   lite  rivers\n`)
    expect(shown.stdout).toContain(created.stdout)
    expect(shown.stdout).toContain('  last run')
    expect(triggered.stdout).toBe(`${id} is running now.\n`)
    expect(JSON.parse(all.stdout)).toMatchObject({ monitor_id: id, status: 'active' })
    expect(cancelled.stdout).toBe(`${id}  cancelled  1d   lite  rivers\n`)
    expect(active).toMatchObject({ code: 0, stdout: 'No monitors.\n' })
  })

  it.each([['get'], ['trigger'], ['cancel']])(
    '%s ends with 4 for a monitor that there is not',
    async (verb) => {
      const env = await service()
      const { code, stderr } = await inProcess(['monitor', verb, 'monitor_missing'], env)

      expect(code).toBe(4)
      expect(stderr).toContain('monitor_missing')
    },
  )
})

describe('rivulet group', () => {
  it('creates a group, and shows its progress', async () => {
    const env = await service()
    const created = await inProcess(['group', 'create'], env)
    const id = created.stdout.trim()
    const empty = await inProcess(['group', 'status', id], env)
    const added = await inProcess(
      ['group', 'add', id, '--input', 'What is small?', '--input', 'And large?'],
      env,
    )
    await inProcess(['watch', '--group', id], env)
    const done = await inProcess(['group', 'status', id], env)

    expect(created.stdout).toMatch(/^tgrp_\w+\n$/)
    expect(empty.stdout).toBe(`${id}  no runs yet\n`)
    expect(added.stdout).toBe(`2 runs added to ${id}.\n`)
    expect(done.stdout).toBe(`${id}  done  2 of 2 ended, 2 completed\n`)
  })

  it('shows the errors of failed runs by frequency, and replaces each run once', async () => {
    const attempts = new Map<string, number>()
    const env = await service({
      run: async ({ input }) => {
        const attempt = (attempts.get(String(input.input)) ?? 0) + 1
        attempts.set(String(input.input), attempt)
        if (attempt === 1)
          throw new Error(input.input === 'c' ? 'no \u001b[31mspace' : 'page trun_012345678 is gone')
        return { output: { type: 'text', content: 'yes', basis: [] } }
      },
    })
    const id = (await inProcess(['group', 'create'], env)).stdout.trim()
    const empty = await inProcess(['group', 'errors', id], env)
    const inputs = ['a', 'b', 'c'].flatMap((input) => ['--input', input])
    await inProcess(['group', 'add', id, ...inputs], env)
    await inProcess(['watch', '--group', id], env)

    const errors = await inProcess(['group', 'errors', id], env)
    const json = await inProcess(['group', 'errors', id, '--json'], env)
    const retried = await inProcess(['group', 'retry', id], env)
    const again = await inProcess(['group', 'retry', id, '--status', 'failed', 'cancelled'], env)

    expect(empty.stdout).toBe(`No run of ${id} has failed.\n`)
    expect(errors.stdout).toMatch(
      /^ {4}2 runs {2}page … is gone\n +\S+ .*trun_\w+ trun_\w+\n {5}1 run {2}no \\u001b\[31mspace\n.*trun_\w+\n$/,
    )
    expect(JSON.parse(json.stdout)).toMatchObject({
      failed: 3,
      errors: [{ count: 2 }, { count: 1 }],
      others: 0,
    })
    expect(retried.stdout).toMatch(
      /^(trun_\w+ replaces trun_\w+ {2}attempt 2\n){3}3 runs added to tgrp_\w+\.\n$/,
    )
    expect(again.stdout).toBe(`No run of ${id} is to be replaced.\n`)
  })

  it('shows the errors of a group whose service does not count its runs', async () => {
    const run = { run_id: 'trun_1', status: 'failed', error: { message: 'no space' }, is_active: false }
    const event = { type: 'task_run.state', event_id: '1', run }
    let counts: object | null = null
    const url = await serve((request, response) => {
      if (request.url?.includes('/runs') === true) {
        openStream(response)
        return void response.end(`id: 1\ndata: ${JSON.stringify(event)}\n\n`)
      }
      const status = { num_task_runs: 1, task_run_status_counts: counts, is_active: false }
      // The stream would wait for more, since it has no other way to know that it is done.
      counts = { failed: 1 }
      answer(response, { taskgroup_id: 'tgrp_1', status })
    })
    const env = { RIVULET_BASE_URL: url, RIVULET_API_KEY: 'key_of_the_test' }
    const { code, stdout, stderr } = await inProcess(['group', 'errors', 'tgrp_1'], env)
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' })
    expect(stdout).toContain('1 run  no space')
  })

  it('needs the headers for the tool servers of the runs that it retries, from a file', async () => {
    const env = await service({ run: () => Promise.reject(new Error('no')) })
    const url = 'https://tools.example/mcp'
    const run = { input: 'a', mcp_servers: [{ type: 'url', url, name: 'tools' }] }
    const folder = await folderOf({
      'inputs.jsonl': JSON.stringify(run),
      'headers.json': JSON.stringify({ [url]: { authorization: 'secret' } }),
      'wrong.json': JSON.stringify({ [url]: 'secret' }),
      'malformed.json': '{ "a": secret }',
    })
    const id = (await inProcess(['group', 'create'], env)).stdout.trim()
    await inProcess(['group', 'add', id, '--file', join(folder, 'inputs.jsonl')], env)
    await inProcess(['watch', '--group', id], env)
    const retry = (...args: readonly string[]) => inProcess(['group', 'retry', id, ...args], env)

    const without = await retry()
    const [wrong, malformed] = await Promise.all(
      ['wrong.json', 'malformed.json'].map((name) => retry('--mcp-headers', join(folder, name))),
    )
    const right = await retry('--mcp-headers', join(folder, 'headers.json'), '--json')

    expect(without).toMatchObject({ code: 2, stderr: expect.stringContaining('https://tools.example') })
    expect(without.stderr).toContain('--mcp-headers')
    expect(without.stderr).not.toContain('mcpHeaders')
    expect(wrong?.stderr).toContain('Each URL must have an object')
    expect(malformed?.stderr).toContain('It cannot be read as a JSON object')
    for (const refused of [wrong, malformed]) {
      expect(refused?.code).toBe(2)
      expect(refused?.stderr).not.toContain('secret')
    }
    expect(JSON.parse(right.stdout)).toMatchObject({ replaced: { status: 'failed' }, attempt: 2 })
  })

  it('adds runs from a file and from standard input', async () => {
    const env = await service()
    const folder = await folderOf({
      'inputs.jsonl': '"What is a rivulet?"\n\n{"input":{"topic":"rivers"},"processor":"core"}\n',
    })
    const created = await rivulet(['group', 'create', '--metadata', 'a=b', '--json'], env).ended
    const { taskgroup_id: id, metadata } = JSON.parse(created.stdout)
    const [filed, piped] = await Promise.all([
      rivulet(['group', 'add', id, '--file', join(folder, 'inputs.jsonl'), '--json'], env).ended,
      rivulet(['group', 'add', id, '--json'], env, '"What has an electrolyte?"\n').ended,
    ])

    expect(metadata).toEqual({ a: 'b' })
    expect(JSON.parse(filed.stdout).run_ids).toHaveLength(2)
    expect(JSON.parse(piped.stdout).run_ids).toHaveLength(1)
  })

  it.each([
    ['a line that is not JSON', 'rivers\n', /inputs.jsonl, line 1/],
    ['an object without an input', '"rivers"\n{"question":"x"}\n', /inputs.jsonl, line 2/],
    ['nothing', '\n', /there are no inputs/],
  ])('refuses %s in a file, and adds nothing', async (_, text, message) => {
    const folder = await folderOf({ 'inputs.jsonl': text })
    const args = ['group', 'add', 'g', '--file', join(folder, 'inputs.jsonl')]
    const { code, stderr } = await inProcess(args, NO_SERVICE)

    expect(code).toBe(2)
    expect(stderr).toMatch(message)
  })
})

describe('rivulet run', () => {
  it('prints the answer and its citations', async () => {
    const env = await service()
    const { code, stdout } = await rivulet(['run', 'What is a rivulet?'], env).ended

    expect(code).toBe(0)
    expect(stdout).toMatch(/^A rivulet is a small stream of water\. \[1\]/)
    expect(stdout).toMatch(/\n\n\[1\] file:.*river\.md\n {4}Rivers: “/)
  })

  it('prints an answer that follows a schema, as a line of JSON', async () => {
    const env = await service()
    const electrolyte = { type: 'string', description: 'What electrolyte a solid state battery has' }
    const schema = { type: 'object', properties: { electrolyte }, required: ['electrolyte'] }
    const folder = await folderOf({ 'schema.json': JSON.stringify(schema) })
    const options = ['--schema', join(folder, 'schema.json'), '--processor', 'core', '--json']
    const { stdout } = await inProcess(['run', 'Which electrolyte?', ...options], env)

    expect(JSON.parse(stdout)).toMatchObject({
      taskgroup_id: expect.stringMatching(/^tgrp_/),
      run: { status: 'completed', processor: 'core' },
      output: { type: 'json', content: { electrolyte: expect.stringContaining('solid') } },
    })
  })

  it('ends with 1 and prints the reason when the run fails', async () => {
    const env = await service({ run: () => Promise.reject(new Error('no source')) })
    const { code, stdout, stderr } = await rivulet(['run', 'What is a rivulet?'], env).ended

    expect(code).toBe(1)
    expect(stdout).toBe('')
    expect(stderr).toMatch(/^rivulet: trun_\w+ failed: /m)
  })

  it('leaves the run to the service at Ctrl-C, and prints how to watch it', async () => {
    const started = Promise.withResolvers<void>()
    const env = await service({
      run: (_task, signal) => {
        started.resolve()
        return new Promise((_, reject) => signal.addEventListener('abort', () => reject(signal.reason)))
      },
    })
    const run = rivulet(['run', 'What is a rivulet?'], env)
    await started.promise
    run.child.kill('SIGINT')
    const { code, stderr } = await run.ended

    expect(code).toBe(130)
    expect(stderr).toMatch(/^The run continues at the service: rivulet watch --group tgrp_\w+\n$/)
  })
})
