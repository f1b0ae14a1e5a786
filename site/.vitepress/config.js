// SPDX-License-Identifier: Apache-2.0
// The documentation as pages that can be searched: "make site". The Markdown files
// of the repository are the source, and stay readable without this. Nothing is
// loaded from elsewhere; the search works in the browser, on an index beside the
// pages.
import { existsSync } from 'node:fs'
import { createRequire } from 'node:module'
import path from 'node:path'
import { fileURLToPath } from 'node:url'
import { defineConfig } from 'vitepress'

const { resolve } = createRequire(import.meta.url)
const root = fileURLToPath(new URL('../..', import.meta.url))
const source = 'https://github.com/kubectl-gc/kubectl-gc/blob/main/'

// Pages link to files that are no pages, such as manifests and schemas: their
// place is the repository.
const isPage = (file) => file.endsWith('.md')
const isPicture = (file) => /\.(png|svg)$/.test(file)

function linkToRepository(md) {
  md.core.ruler.push('repository', (state) => {
    const dir = path.dirname(path.join(root, state.env.relativePath))
    for (const block of state.tokens) {
      for (const token of block.children ?? []) {
        const href = token.type === 'link_open' && token.attrGet('href')
        if (!href || /^[a-z]+:|^#/.test(href)) continue
        const file = path.join(dir, decodeURI(href.split('#')[0]))
        if (!isPage(file) && !isPicture(file) && existsSync(file)) {
          token.attrSet('href', source + path.relative(root, file))
        }
      }
    }
  })
}

// Headings have the fragments that they have on GitHub.
const slugify = (text) => text.trim().toLowerCase().replace(/[^\p{L}\p{N}\p{M}_ -]/gu, '').replaceAll(' ', '-')

const page = (text, file) => ({ text, link: '/' + file })

export default defineConfig({
  title: 'kubectl gc',
  description: "What Kubernetes' garbage collector does: what owns what, what a deletion takes, why something is still there",
  lang: 'en',
  head: [['link', { rel: 'icon', href: 'data:,' }]],
  srcDir: '..',
  outDir: '../bin/site',
  cacheDir: '../bin/site-cache',
  srcExclude: ['bin/**', 'hack/**', 'site/**', 'test/**', '**/testdata/**'],
  rewrites: { 'README.md': 'index.md' },
  base: process.env.SITE_BASE || '/',
  markdown: { config: linkToRepository, anchor: { slugify } },
  vite: {
    build: { chunkSizeWarningLimit: 2000 },
    // The pages are in a directory from which it would not be found.
    resolve: { alias: [
      { find: /^vue$/, replacement: path.join(path.dirname(resolve('vue/package.json')), 'dist/vue.runtime.esm-bundler.js') },
      { find: /^vue\/server-renderer$/, replacement: resolve('vue/server-renderer') }
    ] }
  },
  themeConfig: {
    search: { provider: 'local' },
    outline: [2, 3],
    externalLinkIcon: true,
    sidebar: [
      {
        text: 'Beginning',
        items: [
          page('What it is', ''), page('Getting started', 'docs/getting-started'), page('Installing', 'docs/install'),
          page('Recipes', 'docs/recipes'), page('Questions', 'docs/faq'), page('Comparison', 'docs/comparison')
        ]
      },
      {
        text: 'Commands',
        items: [
          page('tree', 'docs/tree'), page('explain-stuck', 'docs/explain-stuck'), page('unstick', 'docs/unstick'),
          page('history, undo', 'docs/undo'), page('delete', 'docs/delete'), page('What a deletion breaks', 'docs/foresight'),
          page('uninstall', 'docs/uninstall'), page('collect', 'docs/collect'), page('check', 'docs/check'),
          page('graph', 'docs/graph'), page('snapshot, diff', 'docs/snapshot')
        ]
      },
      {
        text: 'Reference',
        items: [
          page('Flags', 'docs/commands/kubectl_gc'), page('Causes', 'docs/explain-causes'), page('Finalizers', 'docs/finalizers'),
          page('tree', 'docs/tree-reference'), page('unstick', 'docs/unstick-reference'), page('delete', 'docs/delete-reference'), page('undo', 'docs/undo-reference'),
          page('uninstall', 'docs/uninstall-reference'), page('The format of snapshots', 'docs/snapshot-format')
        ]
      },
      {
        text: 'In use',
        items: [
          page('Beside other programs', 'docs/integrations'), page('In the cluster', 'docs/in-cluster'), page('Metrics', 'docs/metrics'),
          page('Testing deletion', 'docs/testing-deletion'),
          page('Security', 'docs/security'), page('Reliability', 'docs/reliability'), page('Compatibility', 'docs/compatibility'),
          page('Benchmarks', 'docs/benchmarks'), page('Layouts of operators', 'docs/foresight-layouts')
        ]
      },
      {
        text: 'Inside',
        items: [
          page('How it works', 'docs/how-it-works'), page('Design', 'docs/design'), page('How a snapshot is read', 'docs/internals/snapshot'),
          page('How references are classified', 'docs/internals/references'), page('Why the preview is right', 'docs/internals/preview'),
          page('What is deleted first', 'docs/internals/order'), page('How a cause is found', 'docs/internals/causes'),
          page('Who is taken for a controller', 'docs/internals/controllers'), page('How a remedy is chosen', 'docs/internals/remedies'),
          page('What is proved before a write', 'docs/internals/proofs'), page('What a journal holds', 'docs/internals/journal'),
          page('How uninstall foretells a tool', 'docs/internals/uninstall'), page('How answers are made', 'docs/internals/answers'),
          page('Which test holds what', 'docs/internals/tests'), page('Contributing', 'CONTRIBUTING'),
          page('Security policy', 'SECURITY'), page('Changes', 'CHANGELOG')
        ]
      }
    ]
  }
})
