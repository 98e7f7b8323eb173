"""The language codes of multilingual models, and what each of them means."""

# The tags are written from ISO 639 and the tables of the papers, not from CLDR. A tag has a script
# only where a reader of the tag could expect another one.
NLLB = """
ace_Arab ace-Arab; ace_Latn ace; acm_Arab acm; acq_Arab acq; aeb_Arab aeb; afr_Latn af;
ajp_Arab apc; aka_Latn ak; amh_Ethi am; apc_Arab apc; arb_Arab ar; ars_Arab ars; ary_Arab ary;
arz_Arab arz; asm_Beng as; ast_Latn ast; awa_Deva awa; ayr_Latn ay; azb_Arab azb; azj_Latn az-Latn;
bak_Cyrl ba; bam_Latn bm; ban_Latn ban; bel_Cyrl be; bem_Latn bem; ben_Beng bn; bho_Deva bho;
bjn_Arab bjn-Arab; bjn_Latn bjn; bod_Tibt bo; bos_Latn bs; bug_Latn bug; bul_Cyrl bg; cat_Latn ca;
ceb_Latn ceb; ces_Latn cs; cjk_Latn cjk; ckb_Arab ckb; crh_Latn crh-Latn; cym_Latn cy; dan_Latn da;
deu_Latn de; dik_Latn din; dyu_Latn dyu; dzo_Tibt dz; ell_Grek el; eng_Latn en; epo_Latn eo;
est_Latn et; eus_Latn eu; ewe_Latn ee; fao_Latn fo; pes_Arab fa; fij_Latn fj; fin_Latn fi;
fon_Latn fon; fra_Latn fr; fur_Latn fur; fuv_Latn ff; gla_Latn gd; gle_Latn ga; glg_Latn gl;
grn_Latn gn; guj_Gujr gu; hat_Latn ht; hau_Latn ha-Latn; heb_Hebr he; hin_Deva hi; hne_Deva hne;
hrv_Latn hr; hun_Latn hu; hye_Armn hy; ibo_Latn ig; ilo_Latn ilo; ind_Latn id; isl_Latn is;
ita_Latn it; jav_Latn jv; jpn_Jpan ja; kab_Latn kab; kac_Latn kac; kam_Latn kam; kan_Knda kn;
kas_Arab ks; kas_Deva ks-Deva; kat_Geor ka; knc_Arab kr-Arab; knc_Latn kr; kaz_Cyrl kk;
kbp_Latn kbp; kea_Latn kea; khm_Khmr km; kik_Latn ki; kin_Latn rw; kir_Cyrl ky-Cyrl; kmb_Latn kmb;
kon_Latn kg; kor_Hang ko; kmr_Latn ku-Latn; lao_Laoo lo; lvs_Latn lv; lij_Latn lij; lim_Latn li;
lin_Latn ln; lit_Latn lt; lmo_Latn lmo; ltg_Latn ltg; ltz_Latn lb; lua_Latn lua; lug_Latn lg;
luo_Latn luo; lus_Latn lus; mag_Deva mag; mai_Deva mai; mal_Mlym ml; mar_Deva mr; min_Latn min;
mkd_Cyrl mk; plt_Latn mg; mlt_Latn mt; mni_Beng mni; khk_Cyrl mn-Cyrl; mos_Latn mos; mri_Latn mi;
zsm_Latn ms; mya_Mymr my; nld_Latn nl; nno_Latn nn; nob_Latn nb; npi_Deva ne; nso_Latn nso;
nus_Latn nus; nya_Latn ny; oci_Latn oc; gaz_Latn om; ory_Orya or; pag_Latn pag; pan_Guru pa;
pap_Latn pap; pol_Latn pl; por_Latn pt; prs_Arab fa-AF; pbt_Arab ps; quy_Latn qu; ron_Latn ro;
run_Latn rn; rus_Cyrl ru; sag_Latn sg; san_Deva sa; sat_Beng sat; scn_Latn scn; shn_Mymr shn;
sin_Sinh si; slk_Latn sk; slv_Latn sl; smo_Latn sm; sna_Latn sn; snd_Arab sd-Arab; som_Latn so;
sot_Latn st; spa_Latn es; als_Latn sq; srd_Latn sc; srp_Cyrl sr-Cyrl; ssw_Latn ss; sun_Latn su;
swe_Latn sv; swh_Latn sw; szl_Latn szl; tam_Taml ta; tat_Cyrl tt; tel_Telu te; tgk_Cyrl tg-Cyrl;
tgl_Latn tl; tha_Thai th; tir_Ethi ti; taq_Latn taq; taq_Tfng taq-Tfng; tpi_Latn tpi; tsn_Latn tn;
tso_Latn ts; tuk_Latn tk; tum_Latn tum; tur_Latn tr; twi_Latn tw; tzm_Tfng tzm-Tfng;
uig_Arab ug-Arab; ukr_Cyrl uk; umb_Latn umb; urd_Arab ur; uzn_Latn uz-Latn; vec_Latn vec;
vie_Latn vi; war_Latn war; wol_Latn wo; xho_Latn xh; ydd_Hebr yi; yor_Latn yo; yue_Hant yue-Hant;
zho_Hans zh-Hans; zho_Hant zh-Hant; zul_Latn zu
"""
M2M = """
af am ar ast az ba be bg bn br bs ca ceb cs cy da de el en es et fa ff fi fr fy ga gd gl gu ha he hi
hr ht hu hy id ig ilo is it ja jv ka kk km kn ko lb lg ln lo lt lv mg mk ml mn mr ms my ne nl no ns
oc or pa pl ps pt ro ru sd si sk sl so sq sr ss su sv sw ta th tl tn tr uk ur uz vi wo xh yi yo zh
zu
"""
MBART = """
ar_AR cs_CZ de_DE en_XX es_XX et_EE fi_FI fr_XX gu_IN hi_IN it_IT ja_XX kk_KZ ko_KR lt_LT lv_LV
my_MM ne_NP nl_XX ro_RO ru_RU si_LK tr_TR vi_VN zh_CN af_ZA az_AZ bn_IN fa_IR he_IL hr_HR id_ID
ka_GE km_KH mk_MK ml_IN mn_MN mr_IN pl_PL ps_AF pt_XX sv_SE sw_KE ta_IN te_IN th_TH tl_XX uk_UA
ur_PK xh_ZA gl_ES sl_SI
"""
TAGS = dict(entry.split() for entry in NLLB.split(";"))
"""Maps NLLB-200's 202 codes, which are those of FLORES-200, to their tags (BCP 47)."""
M2M_CODES = M2M.split()
"""M2M-100's 100 codes."""
MBART_CODES = MBART.split()
"""mBART-50's 52 codes."""
ALL_CODES = [*TAGS, *M2M_CODES, *MBART_CODES]
NEITHER = {"zho_Hant", "ajp_Arab", "apc_Arab", "kas_Deva"}
"""Codes that have a language or a script that M2M-100 and mBART-50 lack."""
M2M_SPELLINGS = {"nob_Latn": "no", "nso_Latn": "ns", "prs_Arab": "fa"}
"""Codes of NLLB-200 whose codes in M2M-100 are not the first part of their tags."""
IN_M2M = dict[str, str | None]()
"""Maps NLLB-200's codes to M2M-100's; None for a language that it lacks."""
for flores, tag in TAGS.items():
    short = M2M_SPELLINGS.get(flores, tag.partition("-")[0])
    IN_M2M[flores] = short if short in M2M_CODES and flores not in NEITHER else None
IN_MBART = dict[str, str | None]()
"""Maps NLLB-200's codes to mBART-50's; None for a language that it lacks."""
for flores, tag in TAGS.items():
    short = tag.partition("-")[0]
    codes = [code for code in MBART_CODES if code.startswith(f"{short}_")]
    IN_MBART[flores] = codes[0] if codes and flores not in NEITHER else None
