import { existsSync, globSync, readFileSync } from 'node:fs'
import { copyFile, cp, mkdir, mkdtemp, rm, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { basename, join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { rolldown } from 'rolldown'
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest'
import { bundleForBrowsers, PARTS } from '../../bench/bundle.ts'
import { importsOf, reachedFrom } from '../../build/public-declarations.ts'
import { nodeVersionProblem } from '../../src/cli/node-version.ts'
import { bundlePage } from '../../src/dashboard/source-page.ts'
import { bundle, MANIFEST, ROOT } from './build.ts'
import type { InstalledPackage } from './build.ts'
import { installPackage } from './installed.ts'

// The compiler and the programs are separate processes.
vi.setConfig({ testTimeout: 60_000 })

const APACHE = 'build/licences/Apache-2.0.txt'

let installed: InstalledPackage
/** The modules of the bundle, as paths within the repository. */
let modules: readonly string[] = []
/** Those of the entries for browsers, which are built apart. */
let modulesForBrowsers: readonly string[] = []

beforeAll(async () => {
  const bundled = bundledModules()
  installed = await installPackage()
  ;({ modules, modulesForBrowsers } = await bundled)
}, 300_000)

afterAll(() => installed[Symbol.asyncDispose]())

async function bundledModules(): Promise<Record<'modules' | 'modulesForBrowsers', string[]>> {
  const folder = await mkdtemp(join(tmpdir(), 'rivulet-maps-'))
  try {
    await bundle(folder, { maps: true })
    const maps = globSync('**/*.js.map', { cwd: folder })
    const sourcesOf = (map: string): string[] => JSON.parse(readFileSync(join(folder, map), 'utf8')).sources
    const pathsOf = (files: readonly string[]) =>
      files.flatMap(sourcesOf).map((path) => path.replace(/^.*?(?=(?:node_modules|src|operators)\/)/, ''))
    const isForBrowsers = (map: string) => /src[\\/](live|react)[\\/]|chunks[\\/]browser-/.test(map)
    return {
      modules: pathsOf(maps.filter((map) => !isForBrowsers(map))),
      modulesForBrowsers: pathsOf(maps.filter(isForBrowsers)),
    }
  } finally {
    await rm(folder, { recursive: true })
  }
}

/** The files with this ending that package.json exports, without those of this repository's own condition. */
function filesNamed(value: unknown, ending: string): string[] {
  if (typeof value === 'string') return value.endsWith(ending) ? [value] : []
  return typeof value === 'object' && value !== null
    ? Object.values(value).flatMap((each) => filesNamed(each, ending))
    : []
}

const named = (ending: string) => filesNamed([MANIFEST.bin, MANIFEST.exports, MANIFEST.imports], ending)

/** The installed package's files of this kind. */
const files = (pattern: string) => globSync(pattern, { cwd: installed.path('.') })

/** The packages that a built file imports statically, itself or through other files of its package. */
function importedBy(entry: string): Set<string> {
  return staticImports(entry).external
}

/** The shared files that a built file imports statically. */
function chunksOf(entry: string): string[] {
  return [...staticImports(entry).files]
    .filter((file) => file.includes('chunks'))
    .map((file) => basename(file))
}

function staticImports(entry: string): { readonly external: Set<string>; readonly files: Set<string> } {
  const external = new Set<string>()
  const seen = new Set([installed.path(entry)])
  for (const file of seen) {
    const code = readFileSync(file, 'utf8')
    for (const [, name = ''] of code.matchAll(/^(?:import|export)\b[^'"]*?["']([^'"]+)["'];?$/gm)) {
      if (name.startsWith('.')) seen.add(join(file, '..', name))
      else external.add(name)
    }
  }
  return { external, files: seen }
}

/** The packages that npm installs for these, from the lock file. */
function installedFor(names: readonly string[]): Set<string> {
  const { packages } = JSON.parse(readFileSync(join(ROOT, 'package-lock.json'), 'utf8'))
  const found = new Set<string>()
  /** Like Node: in the nearest `node_modules` with it. */
  const find = (name: string, from: string): string => {
    const path = `${from === '' ? '' : `${from}/`}node_modules/${name}`
    if (path in packages) return path
    if (from === '') throw new Error(`the lock file has no ${name}`)
    return find(name, from.replace(/(?:^|\/)node_modules\/(?:@[^/]+\/)?[^/]+$/, ''))
  }
  const add = (name: string, from: string) => {
    const path = find(name, from)
    if (found.has(path)) return
    found.add(path)
    for (const dependency of Object.keys(packages[path].dependencies ?? {})) add(dependency, path)
  }
  for (const name of names) add(name, '')
  return found
}

describe('what npm installs', () => {
  it('has five dependencies, and is at most 19 packages besides rxjs', () => {
    const dependencies = Object.keys(MANIFEST.dependencies)

    expect(dependencies.toSorted()).toEqual(['eventsource-parser', 'jose', 'p-retry', 'pino', 'undici'])
    expect(1 + installedFor(dependencies).size).toBeLessThanOrEqual(19)
  })

  it('has every file that package.json names', () => {
    // Several conditions may have the same file.
    expect(new Set(named('.js')).size).toBe(22)
    expect(named('.d.ts')).toHaveLength(16)
    expect(named('.json').map((file) => existsSync(installed.path(file)))).toEqual([true, true, true])
    expect([...named('.js'), ...named('.d.ts')].filter((file) => !existsSync(installed.path(file)))).toEqual(
      [],
    )
  })

  it('has no condition and no script of the repository in its package.json', () => {
    const manifest = readFileSync(installed.path('package.json'), 'utf8')

    // The repository's own has both.
    expect(readFileSync(join(ROOT, 'package.json'), 'utf8')).toContain('"rivulet-source"')
    expect(manifest).not.toContain('rivulet-source')
    expect(Object.keys(JSON.parse(manifest))).toEqual(
      expect.not.arrayContaining(['private', 'scripts', 'devDependencies', 'overrides', 'allowScripts']),
    )
    expect(Object.keys(JSON.parse(manifest).exports)).toEqual(Object.keys(Object(MANIFEST.exports)))
  })

  it('is for each Node that its dependencies are for', () => {
    const ranges = [...installedFor(Object.keys(MANIFEST.dependencies))].map(
      (path): string =>
        JSON.parse(readFileSync(join(ROOT, path, 'package.json'), 'utf8')).engines?.node ?? '*',
    )

    expect(ranges).toContain(MANIFEST.engines.node)
    expect(nodeVersionProblem('22.19.0', MANIFEST.engines.node)).toBeUndefined()
    // As in ">= 10.x".
    const plain = ranges.map((range) => range.replaceAll(/(?<=>=)\s+|\.x/g, ''))
    expect(plain.filter((range) => nodeVersionProblem('22.19.0', range) !== undefined)).toEqual([])
  })

  it('has no TypeScript sources next to the built files, and no reference to a source map', () => {
    const sources = files('**/*.{ts,map}').filter((file) => !file.endsWith('.d.ts'))
    const built = files('dist/**/*.{js,d.ts}')

    expect(sources).toEqual([])
    expect(built.length).toBeGreaterThan(50)
    expect(
      built.filter((file) => readFileSync(installed.path(file), 'utf8').includes('sourceMappingURL=')),
    ).toEqual([])
  })

  it('has the licences of exactly the packages that are bundled', async () => {
    const page = await bundlePage()
    const ofPage = page.modules.map((path) => path.replace(/^.*?(?=node_modules\/)/, ''))
    const folders = [...modules, ...ofPage].flatMap(
      (path) => /^node_modules\/(?:.*\/node_modules\/)?(?:@[^/]+\/)?[^/]+/.exec(path) ?? [],
    )
    const bundled = [...new Set(folders)].map((folder) => {
      const { name, version } = JSON.parse(readFileSync(join(ROOT, folder, 'package.json'), 'utf8'))
      const [licence = ''] = globSync('{LICENSE,license,LICENSE.md,LICENSE.txt,LICENSE-MIT.txt}', {
        cwd: join(ROOT, folder),
      })
      // These packages have none in their folders.
      const file = name.startsWith('@bufbuild/') && licence === '' ? APACHE : join(folder, licence)
      return { title: `${name} ${version}`, text: readFileSync(join(ROOT, file), 'utf8').trim() }
    })
    const notices = readFileSync(installed.path('dist/THIRD-PARTY-NOTICES.txt'), 'utf8')
    const titles = [...notices.matchAll(/^-{80}\n(\S+ \S+) \(.+\)$/gm)].map(([, title]) => title)

    expect(titles).toEqual(bundled.map(({ title }) => title).toSorted())
    expect(titles).toContainEqual(expect.stringMatching(/^hono /))
    expect(bundled.filter(({ text }) => !notices.includes(text))).toEqual([])
  })
})

describe('the built package', () => {
  it('contains no module twice, but for those that browsers have of their own', () => {
    expect(modules.length).toBeGreaterThan(100)
    expect(modules.length).toBe(new Set(modules).size)
    expect(modulesForBrowsers.length).toBe(new Set(modulesForBrowsers).size)
  })

  it('loads no code of Node, no rxjs and no package but the parser in a page', () => {
    expect([...importedBy('dist/src/live/index.js')]).toEqual(['eventsource-parser'])
    expect(modulesForBrowsers.filter((path) => !/^src\/(live|react|protocol)\//.test(path))).toEqual([])
  })

  it('bundles no dependency that users install', () => {
    const bundled = modules.filter((path) => path.startsWith('node_modules/'))
    const theirs = Object.keys({ ...MANIFEST.dependencies, ...MANIFEST.peerDependencies })

    expect(bundled.filter((path) => theirs.some((name) => path.includes(`node_modules/${name}/`)))).toEqual(
      [],
    )
  })

  it('loads neither pino nor the code of the service with the client', () => {
    const client = importedBy(String(named('src/index.js')))

    expect([...client].filter((name) => !name.startsWith('node:')).toSorted()).toEqual(
      expect.arrayContaining(['#exchange', 'rxjs']),
    )
    expect(
      [...client].filter((name) => name === 'pino' || name.startsWith('node:') || name.startsWith('rivulet')),
    ).toEqual([])
    expect([...client].filter((name) => name.startsWith('@opentelemetry'))).toEqual([])
    // The same check finds an import that exists.
    expect(importedBy('dist/src/otel/index.js')).toContain('@opentelemetry/api')
    expect(importedBy('dist/src/service/index.js')).toContain('node:sqlite')
  })

  it('loads the client of NATS with the log on it alone', () => {
    const ofNats = (file: string) => [...importedBy(file)].filter((name) => name.startsWith('@nats-io/'))
    const others = [...named('.js'), 'dist/chunks/command.js'].filter(
      (file) => file !== './dist/src/log/nats/index.js' && existsSync(installed.path(file)),
    )

    expect(ofNats('dist/src/log/nats/index.js').toSorted()).toEqual([
      '@nats-io/jetstream',
      '@nats-io/kv',
      '@nats-io/transport-node',
    ])
    expect(others.length).toBeGreaterThan(10)
    expect(others.flatMap(ofNats)).toEqual([])
  })

  it('loads the packages of alert rules with these alone', () => {
    const rules = chunksOf('dist/src/rules/index.js')
    const others = [...named('.js'), 'dist/chunks/command.js']
      .filter((file) => file !== './dist/src/rules/index.js' && existsSync(installed.path(file)))
      .flatMap((file) => chunksOf(file))

    expect(rules).toEqual(expect.arrayContaining(['rules-packages.js', 'schema-packages.js']))
    expect(rules).not.toContain('service-packages.js')
    expect(others).toContain('service-packages.js')
    expect(others).not.toContain('rules-packages.js')
    expect(chunksOf('dist/src/index.js')).not.toContain('schema-packages.js')
  })

  it('needs only its dependencies, for each of its files', async () => {
    const built = files(
      'dist/{chunks,operators,src/{dashboard,gateway,rules,service,transport,webhooks}}/*.js',
    )
    const program = built.map((file) => `import './node_modules/rivulet/${file}'`)
    await writeFile(
      join(installed.folder, 'imports.mjs'),
      [...program, "process.stdout.write('loaded')"].join('\n'),
    )

    expect(built.length).toBeGreaterThan(8)
    expect((await installed.node(['imports.mjs'])).stdout).toBe('loaded')
  })

  it('has the page of the dashboard, which needs neither React nor the bundler to be served', async () => {
    const page = files('dist/dashboard/*').map((file) => basename(file))
    await writeFile(
      join(installed.folder, 'dashboard.mjs'),
      `import { memoryStore, openLog } from 'rivulet/log'
      import { createDashboard } from 'rivulet/dashboard'
      await using log = await openLog(memoryStore())
      await using dashboard = createDashboard({ log })
      const address = dashboard.address('http://127.0.0.1')
      const [cookie] = (await dashboard(new Request(address))).headers.getSetCookie()[0].split(';')
      const get = (path) => dashboard(new Request(new URL(path, address), { headers: { cookie } }))
      const html = await (await get('/')).text()
      const assets = [...html.matchAll(/"(\\/assets\\/page[^"]+)"/g)].map(([, path]) => path)
      const sizes = await Promise.all(assets.map(async (path) => (await (await get(path)).text()).length))
      process.stdout.write(JSON.stringify({ assets, sizes }))`,
    )
    const { assets, sizes } = JSON.parse((await installed.node(['dashboard.mjs'])).stdout)

    expect(page.toSorted()).toEqual(assets.map((path: string) => basename(path)).toSorted())
    expect(page).toHaveLength(2)
    expect(Math.min(...sizes)).toBeGreaterThan(1_000)
    const loaded = importedBy('dist/src/dashboard/index.js')
    expect(loaded).toContain('#dashboard-page')
    expect([...loaded].filter((name) => /react|rolldown/.test(name))).toEqual([])
    expect([...importedBy('dist/src/dashboard/built-page.js')]).toEqual(['node:fs/promises'])
  })

  it('runs a pipeline through all of its entries, which share classes and gates', async () => {
    await copyFile(join(import.meta.dirname, 'program.js'), join(installed.folder, 'program.mjs'))

    const { stdout } = await installed.node(['program.mjs'])

    expect(JSON.parse(stdout)).toEqual({
      handled: ['about brooks', 'about rivers'],
      gate: true,
      errors: { operators: true, webhooks: true, service: true, sqlite: true, exchange: true },
    })
  })

  it('has a command that reports an old Node in one sentence, before it loads anything', async () => {
    const command = installed.path(MANIFEST.bin['rivulet'] ?? '')
    const old = "Object.defineProperty(process.versions, 'node', { value: '20.20.2' })"
    const preload = `--import=data:text/javascript,${encodeURIComponent(old)}`
    const ended = await installed.node([preload, command, 'start']).catch((error: unknown) => error)

    expect(ended).toMatchObject({ code: 2, stdout: '' })
    expect(ended).toHaveProperty(
      'stderr',
      expect.stringMatching(/^rivulet: requires Node \S.*, but this is Node 20\.20\.2\.\n$/),
    )
    expect([...importedBy(MANIFEST.bin['rivulet'] ?? '')]).toEqual(['node:fs'])
  })

  it('has no effect but on the globals of packages when it is loaded', async () => {
    const entries = Object.keys(Object(MANIFEST.exports)).filter((name) => !name.endsWith('.json'))
    const program = `
      const globals = () => [
        ...Reflect.ownKeys(globalThis).map(String),
        ...process.eventNames().map((name) => 'listeners of ' + String(name) + process.listenerCount(name)),
      ]
      await import('undici')
      const before = globals()
      for (const name of process.argv.slice(1)) await import('rivulet' + name.slice(1))
      process.stdout.write(JSON.stringify(globals().filter((name) => !before.includes(name))))`
    const { stdout } = await installed.node(['--input-type=module', '--eval', program, ...entries])

    // The copy of zod in the rules and in the service.
    expect(JSON.parse(stdout)).toEqual(['__zod_globalConfig', '__zod_globalRegistry'])
  })

  it('leaves nothing in a bundle that imports an entry and uses nothing of it', async () => {
    const entries = Object.keys(Object(MANIFEST.exports)).filter((name) => !name.endsWith('.json'))
    const left = await Promise.all(
      entries.map(async (name) => {
        const file = join(installed.folder, `bare-${name.replaceAll(/\W/g, '-')}.js`)
        await writeFile(file, `import 'rivulet${name.slice(1)}'`)
        return [name, await codeOf(file)]
      }),
    )
    const used = join(installed.folder, 'used.js')
    await writeFile(used, `import { LiveError } from 'rivulet/live'; console.log(LiveError)`)

    expect(left).toEqual(entries.map((name) => [name, '']))
    // The same check finds code that is used.
    expect(await codeOf(used)).toContain('class')
  })

  it.each(PARTS)(
    'has the limit of its sources in a browser, within 2 %: $name',
    async ({ module, boundKb }) => {
      const { gzipped } = await bundleForBrowsers(module, installed.folder)

      expect(gzipped).toBeGreaterThan(1_000)
      expect(gzipped).toBeLessThan(boundKb * 1_020)
    },
  )

  it.each(['rivulet', 'rivulet/operators', 'rivulet/streams'])(
    'names rxjs if %s is loaded without it, while a page and a receiver need none',
    async (name) => {
      const folder = await mkdtemp(join(tmpdir(), 'rivulet-without-'))
      try {
        await mkdir(join(folder, 'node_modules'))
        await cp(installed.path('.'), join(folder, 'node_modules/rivulet'), { recursive: true })
        for (const dependency of ['undici', 'p-retry', 'eventsource-parser', 'is-network-error']) {
          await symlink(
            join(ROOT, 'node_modules', dependency),
            join(folder, 'node_modules', dependency),
            'junction',
          )
        }
        const program = join(folder, 'program.mjs')
        await writeFile(program, `await import(process.argv[2])`)

        await expect(installed.node([program, name])).rejects.toHaveProperty(
          'stderr',
          expect.stringMatching(/ERR_MODULE_NOT_FOUND.*Cannot find package 'rxjs'/s),
        )
        await installed.node([program, 'rivulet/live'])
      } finally {
        await rm(folder, { recursive: true })
      }
    },
  )

  it('works without OpenTelemetry, and names it where it is needed', async () => {
    const folder = await mkdtemp(join(tmpdir(), 'rivulet-without-'))
    try {
      const folderOfPackages = join(folder, 'node_modules')
      await mkdir(folderOfPackages)
      await cp(installed.path('.'), join(folderOfPackages, 'rivulet'), { recursive: true })
      for (const name of ['rxjs', 'undici', 'p-retry', 'eventsource-parser', 'is-network-error']) {
        await symlink(join(ROOT, 'node_modules', name), join(folderOfPackages, name), 'junction')
      }
      const imported = (name: string) =>
        installed.node(['--input-type=module', '-e', `await import(${JSON.stringify(name)})`])
      await imported(pathToFileURL(join(folderOfPackages, 'rivulet/dist/src/index.js')).href)
      await expect(
        imported(pathToFileURL(join(folderOfPackages, 'rivulet/dist/src/otel/index.js')).href),
      ).rejects.toHaveProperty(
        'stderr',
        expect.stringMatching(
          /Cannot find package '@opentelemetry\/api' imported from .*rivulet\/dist\/src\/otel\/index\.js/,
        ),
      )
    } finally {
      await rm(folder, { recursive: true })
    }
  })

  it('has a command with its version and the errors of the library', async () => {
    const command = installed.path(MANIFEST.bin['rivulet'] ?? '')

    expect((await installed.node([command, '--version'])).stdout.trim()).toBe(MANIFEST.version)
    await expect(installed.node([command, 'search', 'rivers'])).rejects.toMatchObject({ code: 2 })
  })

  it('has tools for agents, in its service and its command', async () => {
    const program = `
      import { spawn } from 'node:child_process'
      import { createInterface } from 'node:readline'
      import { createResearchService } from 'rivulet/service'
      const service = await createResearchService({ docs: 'node_modules/rivulet/docs' })
      const url = await service.listen()
      const list = { jsonrpc: '2.0', id: 1, method: 'tools/list' }
      const accept = 'application/json, text/event-stream'
      const headers = { 'x-api-key': service.apiKey, 'content-type': 'application/json', accept }
      const answer = await fetch(url + '/mcp', { method: 'POST', headers, body: JSON.stringify(list) })
      const env = { RIVULET_BASE_URL: url, RIVULET_API_KEY: service.apiKey }
      const agent = spawn(process.execPath, [process.argv[1], 'mcp'], { env, stdio: ['pipe', 'pipe', 'inherit'] })
      agent.stdin.write(JSON.stringify(list) + '\\n')
      createInterface({ input: agent.stdout }).once('line', async (line) => {
        agent.stdin.end()
        for (const text of [await answer.text(), line]) console.log(text.includes('web_search'))
        await service.close()
      })`
    const command = installed.path(MANIFEST.bin['rivulet'] ?? '')
    const { stdout, stderr } = await installed.node(['--input-type=module', '--eval', program, command])

    expect([stdout, stderr]).toEqual(['true\ntrue\n', ''])
  })
})

/** What a bundler makes of a file beside the package. */
async function codeOf(file: string): Promise<string> {
  const build = await rolldown({
    input: file,
    platform: 'node',
    external: /^(?!rivulet)[@#\w]/,
    logLevel: 'silent',
  })
  const { output } = await build.generate({ format: 'esm' })
  await build.close()
  const code = output.map((part) => (part.type === 'chunk' ? part.code : '')).join('')
  return code.replaceAll(/^(?:\/\/#.*|export \{\};?)$/gm, '').trim()
}

/** What the compiler says about a program in the installed package's folder, which checks the declarations of libraries. */
async function complaintsAbout(file: string, types: readonly string[] = ['node']): Promise<string> {
  const config = {
    compilerOptions: {
      module: 'nodenext',
      target: 'es2023',
      lib: ['es2024', 'dom', 'esnext.disposable'],
      types,
      strict: true,
      exactOptionalPropertyTypes: true,
      skipLibCheck: false,
      noEmit: true,
    },
    files: [file],
  }
  await writeFile(join(installed.folder, 'tsconfig.json'), JSON.stringify(config))
  const compiler = join(ROOT, 'node_modules/typescript/bin/tsc')
  return installed.node([compiler]).then(
    () => '',
    (error: { readonly stdout: string }) => error.stdout,
  )
}

describe('the types of the package', () => {
  it('import no package that users do not have', () => {
    const reached = [...reachedFrom(named('.d.ts').map((file) => installed.path(file)))]
    const imported = new Set(reached.flatMap(importsOf).filter((name) => !/^(?:\.|node:)/.test(name)))

    expect([...imported].toSorted()).toEqual(['@opentelemetry/api', 'react', 'rxjs'])
    expect(files('dist/**/*.d.ts')).toHaveLength(reached.length)
  })

  it('have nothing that is marked as internal, and nothing of an entry for pages needs another package', () => {
    const internal = files('dist/**/*.d.ts').filter((file) =>
      readFileSync(installed.path(file), 'utf8').includes('@internal'),
    )
    const sources = globSync('{src,operators}/**/*.ts', { cwd: ROOT }).filter((file) =>
      readFileSync(join(ROOT, file), 'utf8').includes('@internal'),
    )
    const ofPage = [...reachedFrom([installed.path('dist/src/live/index.d.ts')])].flatMap(importsOf)

    expect(internal).toEqual([])
    // The same check finds them in the sources.
    expect(sources.length).toBeGreaterThan(2)
    expect(ofPage.filter((name) => !name.startsWith('.'))).toEqual([])
  })

  it('compile in a project that checks the declarations of its libraries', async () => {
    const entries = Object.keys(Object(MANIFEST.exports)).filter((name) => !name.endsWith('.json'))
    const imports = entries.map((name, index) => `import * as entry${index} from 'rivulet${name.slice(1)}'`)
    const uses = entries.map((_, index) => `entry${index}`)
    await writeFile(
      join(installed.folder, 'user.ts'),
      [...imports, `export const all = [${uses.join()}]`].join('\n'),
    )
    expect(entries).toHaveLength(16)
    expect(await complaintsAbout('user.ts')).toBe('')
  })

  it('of a page need no types of Node and no package', async () => {
    await writeFile(
      join(installed.folder, 'page.ts'),
      `import { connect } from 'rivulet/live'
      import type { ViewShape } from 'rivulet/live'
      const live = connect<{ runs: ViewShape<{ n: number }, 'group'> }>({ url: '/live', getToken: () => '' })
      export const end = live.view('runs', { group: 'a' }).subscribe(({ rows }) => rows.get('a')?.n.toFixed())`,
    )

    expect(await complaintsAbout('page.ts', [])).toBe('')
  })

  it('take event types of the user, for what a process appends and a consumer reads', async () => {
    await copyFile(join(import.meta.dirname, 'own-events.ts.txt'), join(installed.folder, 'own-events.ts'))

    expect(await complaintsAbout('own-events.ts')).toBe('')
  })
})
