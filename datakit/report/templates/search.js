const rows = [...document.querySelectorAll('#all .sample')];
const entry = document.getElementById('search'), stage = document.getElementById('stage');
const shown = document.getElementById('shown');
function update() {
  const words = entry.value.toLowerCase().split(/\s+/).filter(Boolean);
  let count = 0;
  for (const row of rows) {
    const text = row.textContent.toLowerCase();
    const fits = (!stage.value || row.dataset.stage === stage.value) && words.every(w => text.includes(w));
    row.hidden = !fits;
    count += fits;
  }
  shown.textContent = `${count} of ${rows.length}`;
}
if (entry) { entry.addEventListener('input', update); stage.addEventListener('change', update); update(); }
