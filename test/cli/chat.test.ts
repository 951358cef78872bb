import { describe, expect, it } from 'vitest'
import { cutting, framed } from '../support/answer-server.ts'
import { openStream, serve } from '../support/serve.ts'
import { bodyOf } from '../transport/server.ts'
import { folderOf, rivulet } from './command.ts'

const chunk = (content: string, others: object = {}) =>
  JSON.stringify({ choices: [{ index: 0, delta: { content }, finish_reason: null }], ...others })
const basis = [
  {
    field: 'output',
    reasoning: 'It says so.',
    citations: [{ url: 'https://a.example', title: 'Rivers' }, { url: 'https://a.example' }],
  },
]
const answered = [chunk('A small \u001B[2J'), chunk('stream.', { basis }), '[DONE]']

const environment = (url: string) => ({ RIVULET_BASE_URL: url, RIVULET_API_KEY: 'key' })

async function scene() {
  const bodies: unknown[] = []
  const url = await serve(async (request, response) => {
    bodies.push(JSON.parse(await bodyOf(request)))
    openStream(response)
    response.end(framed(answered))
  })
  return { bodies, env: environment(url) }
}

describe('rivulet chat', () => {
  it('prints the answer without control characters, and each source once', async () => {
    const { env, bodies } = await scene()

    expect(await rivulet(['chat', 'What', 'is it?', '--model', 'speed'], env).ended).toMatchObject({
      code: 0,
      stdout: 'A small \\u001b[2Jstream.\n\n[1] https://a.example\n    Rivers\n',
      stderr: '',
    })
    expect(bodies).toMatchObject([{ model: 'speed', messages: [{ role: 'user', content: 'What is it?' }] }])
  })

  it('prints the completion as JSON, and sends a schema', async () => {
    const { env, bodies } = await scene()
    const folder = await folderOf({ 'a.json': '{"type":"object"}' })

    const { stdout, code } = await rivulet(['chat', 'x', '--json', '--schema', `${folder}/a.json`], env).ended

    expect(code).toBe(0)
    expect(JSON.parse(stdout)).toMatchObject({ object: 'chat.completion', basis })
    expect(bodies).toMatchObject([{ response_format: { json_schema: { schema: { type: 'object' } } } }])
  })

  it('fails after the part of an answer that is cut', async () => {
    const url = await serve((request, response) => cutting(chunk('A sm'))(response, request))

    const { code, stdout, stderr } = await rivulet(['chat', 'x'], environment(url)).ended

    expect(code).not.toBe(0)
    expect(stdout).toBe('A sm\n')
    expect(stderr).toContain('the answer is incomplete')
  })
})
