for (const button of document.querySelectorAll("button.copy")) {
  button.addEventListener("click", () => {
    const code = button.nextElementSibling;
    const done = () => { button.textContent = "copied"; setTimeout(() => { button.textContent = "copy"; }, 1200); };
    const select = () => { const range = document.createRange(); range.selectNodeContents(code); getSelection().removeAllRanges(); getSelection().addRange(range); };
    if (navigator.clipboard) { navigator.clipboard.writeText(code.textContent).then(done, select); } else { select(); }
  });
}
